#include "tools/make-model/model_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>

#include "base/temp_file.h"
#include "gguf.h"
#include "tools/make-model/block_pool.h"
#include "tools/make-model/parallel.h"
#include "tools/make-model/random.h"
#include "tools/make-model/vocabulary.h"

namespace onebit {
namespace {

constexpr uint64_t chunk_bytes = 4u << 20;

struct FreeGguf {
    void operator()(gguf_context* context) const { gguf_free(context); }
};
struct FreeGgml {
    void operator()(ggml_context* context) const { ggml_free(context); }
};

class MetaData {
public:
    explicit MetaData(const ModelRequest& request) : request_(request), gguf_(gguf_init_empty()) {}

    void add_model() {
        const ModelShape& shape = request_.shape;
        text("general.architecture", shape.architecture);
        text("general.name", shape.name + " shape, random weights");
        text("general.description", "Random weights for measuring and testing. Rows are put together from a pool of " +
                                        std::to_string(BlockPool::size) + " random units of " +
                                        std::to_string(BlockPool::unit_elements) + " weights; seed " +
                                        std::to_string(request_.seed) + ".");
        number("general.file_type", static_cast<uint32_t>(request_.type.number));
        number("general.quantization_version", GGML_QNT_VERSION);
        own("block_count", shape.layers);
        own("context_length", shape.context);
        own("embedding_length", shape.width);
        own("feed_forward_length", shape.feed_forward);
        own("attention.head_count", shape.heads);
        own("attention.head_count_kv", shape.kv_heads);
        own("attention.key_length", shape.head_width);
        own("attention.value_length", shape.head_width);
        own("vocab_size", shape.vocabulary);
        gguf_set_val_f32(gguf_.get(), key("attention.layer_norm_rms_epsilon").c_str(), 1e-6f);
        gguf_set_val_f32(gguf_.get(), key("rope.freq_base").c_str(), 1e6f);
        if (shape.experts != 0) {
            own("expert_count", shape.experts);
            own("expert_used_count", shape.experts_used);
            own("expert_feed_forward_length", shape.expert_feed_forward);
        }
    }

    void add_vocabulary() {
        const Vocabulary words = make_vocabulary(request_.shape.vocabulary, request_.shape.text_tokens);
        text("tokenizer.ggml.model", "gpt2");
        text("tokenizer.ggml.pre", "qwen2");
        texts("tokenizer.ggml.tokens", words.tokens);
        gguf_set_arr_data(gguf_.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, words.types.data(),
                          words.types.size());
        texts("tokenizer.ggml.merges", words.merges);
        number("tokenizer.ggml.eos_token_id", words.turn_end);
        number("tokenizer.ggml.padding_token_id", words.end_of_text);
        gguf_set_val_bool(gguf_.get(), "tokenizer.ggml.add_bos_token", false);
        text("tokenizer.chat_template",
             "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
             "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
    }

    void add_tensors(const std::vector<PlannedTensor>& tensors) {
        const ggml_init_params parameters{tensors.size() * ggml_tensor_overhead(), nullptr, true};
        const std::unique_ptr<ggml_context, FreeGgml> context(ggml_init(parameters));
        for (const PlannedTensor& planned : tensors) {
            const TensorSpec& spec = planned.spec;
            const int64_t experts = std::max<int64_t>(spec.experts, 1);
            const int64_t sizes[] = {static_cast<int64_t>(spec.row), static_cast<int64_t>(spec.rows) / experts,
                                     experts};
            const int dimensions = spec.experts != 0 ? 3 : spec.role == TensorRole::vector ? 1 : 2;
            ggml_tensor* tensor = ggml_new_tensor(context.get(), planned.type, dimensions, sizes);
            ggml_set_name(tensor, spec.name.c_str());
            gguf_add_tensor(gguf_.get(), tensor);
        }
    }

    std::vector<std::byte> bytes() const {
        std::vector<std::byte> bytes(gguf_get_meta_size(gguf_.get()));
        gguf_get_meta_data(gguf_.get(), bytes.data());
        return bytes;
    }
    uint64_t tensor_offset(size_t index) const {
        return gguf_get_tensor_offset(gguf_.get(), static_cast<int64_t>(index));
    }
    uint64_t alignment() const { return gguf_get_alignment(gguf_.get()); }

private:
    std::string key(const char* name) const { return request_.shape.architecture + "." + name; }
    void own(const char* name, uint32_t value) { number(key(name).c_str(), value); }
    void number(const char* name, uint32_t value) { gguf_set_val_u32(gguf_.get(), name, value); }
    void text(const char* name, const std::string& value) { gguf_set_val_str(gguf_.get(), name, value.c_str()); }
    void texts(const char* name, const std::vector<std::string>& values) {
        std::vector<const char*> pointers(values.size());
        std::ranges::transform(values, pointers.begin(), [](const std::string& value) { return value.c_str(); });
        gguf_set_arr_str(gguf_.get(), name, pointers.data(), pointers.size());
    }

    const ModelRequest& request_;
    std::unique_ptr<gguf_context, FreeGguf> gguf_;
};

// A part of a tensor that one thread writes with one call.
struct Chunk {
    size_t tensor;
    uint64_t first_row, rows;
    uint64_t offset;  // in the file
};

class Writer {
public:
    Writer(const ModelRequest& request, const ModelPlan& plan) : request_(request), plan_(plan), meta_(request) {
        meta_.add_model();
        meta_.add_vocabulary();
        meta_.add_tensors(plan.tensors);
    }

    Result<void> write() {
        std::error_code ignored;
        if (std::filesystem::is_directory(request_.file, ignored)) {
            return Error{ErrorCode::usage, request_.file.string(), "the path of a file", "a folder",
                         "name a file in it"};
        }
        const std::vector<std::byte> head = meta_.bytes();
        lay_out(head.size());
        ONEBIT_RETURN_IF_ERROR(check_space());
        auto file = TempFile::create(request_.file, 0644);
        if (!file.ok()) return std::move(file).error();
        ONEBIT_RETURN_IF_ERROR(file->write(head));
        if (::ftruncate(file->fd(), static_cast<off_t>(size_)) != 0) {
            return error_from_errno(errno, request_.file.string(), "write to a disk that takes files of this size");
        }
        make_pools();
        ONEBIT_RETURN_IF_ERROR(write_chunks(file->fd()));
        return file->publish();
    }

private:
    // pools of the same weights in units of another length are others
    using PoolKey = std::tuple<ggml_type, double, bool>;
    static PoolKey key_of(const PlannedTensor& tensor) {
        return {tensor.type, tensor.spec.deviation, tensor.spec.row % BlockPool::unit_elements == 0};
    }

    void lay_out(uint64_t start) {
        for (size_t t = 0; t < plan_.tensors.size(); t++) {
            const PlannedTensor& tensor = plan_.tensors[t];
            const uint64_t offset = start + meta_.tensor_offset(t);
            const uint64_t row_bytes = tensor.bytes / tensor.spec.rows;
            const uint64_t rows = std::clamp<uint64_t>(chunk_bytes / row_bytes, 1, tensor.spec.rows);
            for (uint64_t row = 0; row < tensor.spec.rows; row += rows) {
                chunks_.push_back({t, row, std::min(rows, tensor.spec.rows - row), offset + row * row_bytes});
            }
            largest_ = std::max(largest_, rows * row_bytes);
            size_ = (offset + tensor.bytes + meta_.alignment() - 1) / meta_.alignment() * meta_.alignment();
        }
    }

    // Said before minutes of writing.
    Result<void> check_space() const {
        const std::filesystem::path folder = request_.file.has_parent_path() ? request_.file.parent_path() : ".";
        std::error_code error;
        const auto space = std::filesystem::space(folder, error);
        if (error || space.available >= size_) return {};
        return Error{ErrorCode::no_space, folder.string(), std::to_string(size_) + " bytes",
                     std::to_string(space.available) + " free", "free some, or take fewer --layers"};
    }

    void make_pools() {
        for (const PlannedTensor& tensor : plan_.tensors) {
            if (tensor.spec.role == TensorRole::vector) continue;
            auto& pool = pools_[key_of(tensor)];
            if (!pool) {
                pool = std::make_unique<BlockPool>(tensor.type, tensor.spec.deviation, tensor.spec.row, request_.seed,
                                                   request_.threads);
            }
        }
    }

    Result<void> write_chunks(int fd) {
        std::vector<std::vector<std::byte>> buffers(request_.threads);
        for (auto& buffer : buffers) buffer.resize(largest_);
        std::atomic<int> problem{0};
        in_parallel(request_.threads, chunks_.size(), [&](unsigned worker, size_t number) {
            if (problem != 0) return;
            const Chunk& chunk = chunks_[number];
            const uint64_t bytes = fill(chunk, buffers[worker].data());
            if (const int reason = write_at(fd, buffers[worker].data(), bytes, chunk.offset); reason != 0) {
                problem = reason;
            }
        });
        if (problem == 0) return {};
        return error_from_errno(problem, request_.file.string(), "free space on its disk");
    }

    uint64_t fill(const Chunk& chunk, std::byte* to) const {
        const PlannedTensor& tensor = plan_.tensors[chunk.tensor];
        const TensorSpec& spec = tensor.spec;
        const uint64_t key = combine(request_.seed, spec.name);
        if (spec.role == TensorRole::vector) {
            for (uint64_t i = 0; i < spec.row; i++) {
                const float value = static_cast<float>(spec.mean + spec.deviation * normal_at(key, i));
                std::memcpy(to + i * sizeof value, &value, sizeof value);
            }
        } else {
            pools_.at(key_of(tensor))->write_rows(key, spec.row, chunk.first_row, chunk.rows, to);
        }
        return tensor.bytes / spec.rows * chunk.rows;
    }

    static int write_at(int fd, const std::byte* bytes, uint64_t count, uint64_t offset) {
        while (count != 0) {
            const ssize_t written = ::pwrite(fd, bytes, count, static_cast<off_t>(offset));
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return written == 0 ? EIO : errno;
            bytes += written;
            count -= static_cast<uint64_t>(written);
            offset += static_cast<uint64_t>(written);
        }
        return 0;
    }

    const ModelRequest& request_;
    const ModelPlan& plan_;
    MetaData meta_;
    std::vector<Chunk> chunks_;
    uint64_t largest_ = 0, size_ = 0;
    std::map<PoolKey, std::unique_ptr<BlockPool>> pools_;
};

}  // namespace

ModelPlan plan_model_file(const ModelRequest& request) {
    ModelPlan plan;
    const bool importance = made_with_importance(request.type);
    for (TensorSpec& spec : tensors_of(request.shape, request.logit_deviation)) {
        PlannedTensor tensor;
        tensor.type = tensor_type(request.type, request.shape, spec, importance);
        tensor.bytes = ggml_row_size(tensor.type, static_cast<int64_t>(spec.row)) * spec.rows;
        plan.parameters += spec.elements();
        plan.tensor_bytes += tensor.bytes;
        tensor.spec = std::move(spec);
        plan.tensors.push_back(std::move(tensor));
    }
    return plan;
}

Result<ModelPlan> write_model(const ModelRequest& request) try {
    ModelPlan plan = plan_model_file(request);
    ONEBIT_RETURN_IF_ERROR(Writer(request, plan).write());
    return plan;
} catch (const std::exception& error) {
    return Error{ErrorCode::no_space, request.file.string(), "a model", error.what(), "take fewer --threads"};
}

}  // namespace onebit
