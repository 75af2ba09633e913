#include "server/catalog/head_cache.h"

#include <atomic>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "server/catalog/gguf_file.h"
#include "server/catalog/gguf_types.h"

namespace onebit {
namespace {

constexpr size_t kMostHeads = 200'000;

using State = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;

State state_of(const struct stat& status) {
    return {status.st_dev,          status.st_ino,         status.st_size,        status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

struct Cache {
    struct Entry {
        State state;
        std::shared_ptr<const HeadSummary> summary;
    };
    std::mutex mutex;
    std::unordered_map<std::string, Entry> heads;
};

Cache& cache() {
    static Cache instance;
    return instance;
}

std::atomic<uint64_t> reads{0};

GgufRole role_of(const GgufHead& head) {
    const std::string type = head.text("general.type");
    if (type == "mmproj" || head.text("general.architecture") == "clip") return GgufRole::projector;
    if (!type.empty() && type != "model") return GgufRole::other;
    // a file with a vocabulary alone has no tensors; the first shard of a set may have none either
    return head.tensors.empty() && head.split_count == 1 ? GgufRole::other : GgufRole::model;
}

HeadSummary summarize(const std::filesystem::path& file) {
    HeadSummary summary;
    auto head = read_gguf_head(file);
    if (!head) {
        summary.error = std::move(head).error();
        return summary;
    }
    summary.role = role_of(*head);
    summary.architecture = head->text("general.architecture");
    summary.name = head->text("general.name");
    summary.quantization = gguf_file_type_name(head->number("general.file_type", UINT64_MAX));
    summary.context_length = head->number(summary.architecture + ".context_length", 0);
    summary.tensors = head->tensors.size();
    summary.tensors_of_all_shards = head->number("split.tensors.count", 0);
    summary.split_no = head->split_no;
    summary.split_count = head->split_count;
    for (const GgufTensor& tensor : head->tensors) {
        uint64_t elements = 1;  // the head's check vouches that this fits
        for (uint64_t length : tensor.shape) elements *= length;
        summary.parameters += elements;
    }
    return summary;
}

}  // namespace

std::shared_ptr<const HeadSummary> head_summary(const std::filesystem::path& file, const struct stat& status) {
    const State state = state_of(status);
    {
        std::lock_guard lock(cache().mutex);
        auto found = cache().heads.find(file.native());
        if (found != cache().heads.end() && found->second.state == state) return found->second.summary;
    }
    auto summary = std::make_shared<const HeadSummary>(summarize(file));
    ++reads;
    std::lock_guard lock(cache().mutex);
    if (cache().heads.size() >= kMostHeads) cache().heads.clear();
    cache().heads[file.native()] = {state, summary};
    return summary;
}

uint64_t head_reads() { return reads; }

}  // namespace onebit
