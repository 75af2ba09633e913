// If this fails, Vulkan memory is not shared with a guest: a copy is made, the addresses are not those of one memory,
// or the two members of a tandem on software Vulkan compute something else than each alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml.h"
#include "tandem/counters.h"
#include "tandem/device.h"
#include "tandem/owner.h"
#include "tandem/owner_type.h"
#include "tandem/shared_buffer.h"
#include "tests/tandem/model_run.h"
#include "vkshare/vkshare.h"

namespace onebit::tandem {
namespace {

const onebit_vkshare_api& api() { return *onebit_vkshare(ONEBIT_VKSHARE_VERSION); }

ggml_tensor bytes_of(ggml_backend_buffer_t buffer, size_t offset, size_t bytes) {
    ggml_tensor tensor = {};
    tensor.type = GGML_TYPE_I8;
    tensor.buffer = buffer;
    tensor.data = static_cast<char*>(ggml_backend_buffer_get_base(buffer)) + offset;
    tensor.ne[0] = static_cast<int64_t>(bytes);
    tensor.ne[1] = tensor.ne[2] = tensor.ne[3] = 1;
    tensor.nb[0] = 1;
    tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = bytes;
    return tensor;
}

class Vulkan : public testing::Test {
protected:
    void SetUp() override {
        device_ = ggml_backend_dev_by_name("Vulkan0");
        if (device_ == nullptr) GTEST_SKIP() << "no Vulkan driver";
        auto owner = make_vulkan_owner(device_);
        ASSERT_TRUE(owner.ok()) << owner.error().message();
        owner_ = std::move(*owner);
        type_ = ggml_backend_dev_buffer_type(device_);
    }
    ggml_backend_dev_t device_ = nullptr;
    ggml_backend_buffer_type_t type_ = nullptr;
    std::unique_ptr<Owner> owner_;
    char text_[256] = {};
};

using VulkanSharing = Vulkan;
using TandemOnVulkan = Vulkan;

TEST_F(VulkanSharing, AnotherVersionIsNotHandedOut) {
    EXPECT_EQ(onebit_vkshare(ONEBIT_VKSHARE_VERSION + 1), nullptr);
    EXPECT_EQ(onebit_vkshare(0), nullptr);
}

TEST_F(VulkanSharing, DeviceIsDescribed) {
    onebit_vkshare_device about = {};
    ASSERT_TRUE(api().describe(type_, &about, text_, sizeof text_)) << text_;
    EXPECT_TRUE(about.exportable & ONEBIT_VKSHARE_HOST);
    EXPECT_GE(about.max_buffer, uint64_t{1} << 20);
    EXPECT_FALSE(
        api().describe(ggml_backend_dev_buffer_type(ggml_backend_dev_by_name("CPU")), &about, text_, sizeof text_));
    EXPECT_NE(std::string(text_), "");
}

TEST_F(VulkanSharing, HostPointerAndBufferAreOneMemory) {
    for (const uint64_t size :
         {uint64_t{1}, uint64_t{4}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097}, uint64_t{3} << 20}) {
        ggml_backend_buffer_t buffer = api().allocate(type_, size, ONEBIT_VKSHARE_HOST, text_, sizeof text_);
        ASSERT_NE(buffer, nullptr) << text_;
        onebit_vkshare_memory memory = {};
        ASSERT_TRUE(api().memory(buffer, &memory));
        ASSERT_NE(memory.host, nullptr);
        EXPECT_EQ(memory.size, size);
        EXPECT_GE(memory.allocation, size);
        ggml_tensor tensor = bytes_of(buffer, size - 1, 1);
        const char out = 77;
        ggml_backend_tensor_set(&tensor, &out, 0, 1);
        EXPECT_EQ(static_cast<char*>(memory.host)[size - 1], 77);
        static_cast<char*>(memory.host)[size - 1] = 33;
        char back = 0;
        ggml_backend_tensor_get(&tensor, &back, 0, 1);
        EXPECT_EQ(back, 33);
        ggml_backend_buffer_free(buffer);
    }
}

TEST_F(VulkanSharing, DescriptorAndBufferAreOneMemory) {
    onebit_vkshare_device about = {};
    ASSERT_TRUE(api().describe(type_, &about, text_, sizeof text_)) << text_;
    if (!(about.exportable & about.importable & ONEBIT_VKSHARE_OPAQUE_FD))
        GTEST_SKIP() << "this driver exports no memory";
    const uint64_t size = 1 << 20;
    ggml_backend_buffer_t first = api().allocate(type_, size, ONEBIT_VKSHARE_OPAQUE_FD, text_, sizeof text_);
    ASSERT_NE(first, nullptr) << text_;
    onebit_vkshare_memory memory = {};
    ASSERT_TRUE(api().memory(first, &memory));
    const int fd = api().export_fd(first, ONEBIT_VKSHARE_OPAQUE_FD, text_, sizeof text_);
    ASSERT_GE(fd, 0) << text_;
    // more than there is behind the descriptor is refused, and the descriptor stays the caller's
    EXPECT_EQ(api().import_fd(type_, ONEBIT_VKSHARE_OPAQUE_FD, fd, memory.allocation * 2, memory.allocation, text_,
                              sizeof text_),
              nullptr);
    EXPECT_NE(std::string(text_).find("allocation"), std::string::npos) << text_;
    ggml_backend_buffer_t second =
        api().import_fd(type_, ONEBIT_VKSHARE_OPAQUE_FD, fd, size, memory.allocation, text_, sizeof text_);
    ASSERT_NE(second, nullptr) << text_;
    for (const size_t offset : {size_t{0}, size_t{65537}, size_t{size - 64}}) {
        ggml_tensor one = bytes_of(first, offset, 64), two = bytes_of(second, offset, 64);
        std::vector<char> out(64), back(64);
        for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(offset + i * 7 + 1);
        ggml_backend_tensor_set(&one, out.data(), 0, out.size());
        ggml_backend_tensor_get(&two, back.data(), 0, back.size());
        EXPECT_EQ(out, back) << offset;
    }
    // the exporter may go first
    ggml_backend_buffer_free(first);
    ggml_tensor two = bytes_of(second, 0, 1);
    char byte = 5;
    ggml_backend_tensor_set(&two, &byte, 0, 1);
    ggml_backend_buffer_free(second);
}

TEST_F(VulkanSharing, HostMemoryBecomesABuffer) {
    onebit_vkshare_device about = {};
    ASSERT_TRUE(api().describe(type_, &about, text_, sizeof text_)) << text_;
    if (!(about.importable & ONEBIT_VKSHARE_HOST)) GTEST_SKIP() << "this driver imports no host memory";
    const size_t size = about.host_align * 4;
    char* memory = static_cast<char*>(std::aligned_alloc(about.host_align, size));
    std::memset(memory, 9, size);
    EXPECT_EQ(api().import_host(type_, memory + 1, size, text_, sizeof text_), nullptr);
    EXPECT_EQ(api().import_host(type_, memory, size - 1, text_, sizeof text_), nullptr);
    ggml_backend_buffer_t buffer = api().import_host(type_, memory, size, text_, sizeof text_);
    ASSERT_NE(buffer, nullptr) << text_;
    ggml_tensor tensor = bytes_of(buffer, size - 1, 1);
    char byte = 0;
    ggml_backend_tensor_get(&tensor, &byte, 0, 1);
    EXPECT_EQ(byte, 9);
    ggml_backend_buffer_free(buffer);
    std::free(memory);
}

TEST_F(VulkanSharing, RefusalsNameTheReason) {
    EXPECT_EQ(api().allocate(type_, 0, ONEBIT_VKSHARE_HOST, text_, sizeof text_), nullptr);
    EXPECT_NE(std::string(text_).find("at least 1 byte"), std::string::npos) << text_;
    EXPECT_EQ(api().allocate(type_, UINT64_MAX / 2, ONEBIT_VKSHARE_HOST, text_, sizeof text_), nullptr);
    EXPECT_NE(std::string(text_).find("at most"), std::string::npos) << text_;
    EXPECT_EQ(api().allocate(type_, 4096, 64, text_, sizeof text_), nullptr);
    EXPECT_NE(std::string(text_).find("kind"), std::string::npos) << text_;
    ggml_backend_buffer_t ordinary = ggml_backend_buft_alloc_buffer(type_, 4096);
    EXPECT_EQ(api().export_fd(ordinary, ONEBIT_VKSHARE_OPAQUE_FD, text_, sizeof text_), -1);
    EXPECT_NE(std::string(text_).find("not allocated to be shared"), std::string::npos) << text_;
    ggml_backend_buffer_free(ordinary);
    EXPECT_EQ(api().import_fd(type_, ONEBIT_VKSHARE_OPAQUE_FD, -1, 4096, 4096, text_, sizeof text_), nullptr);
    // a message that is longer than its place is cut, not written over
    char small[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    EXPECT_EQ(api().allocate(type_, 0, ONEBIT_VKSHARE_HOST, small, 4), nullptr);
    EXPECT_EQ(small[3], 0);
    EXPECT_EQ(small[4], 1);
    EXPECT_FALSE(api().memory(nullptr, nullptr));
}

size_t resident_bytes() {
    size_t pages = 0, resident = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%zu %zu", &pages, &resident) != 2) return 0;
    std::fclose(file);
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// DEV29: one copy for two members.
TEST_F(TandemOnVulkan, GuestAndOwnerSeeOneMemory) {
    ggml_backend_dev_t tandem = device_of("owner=Vulkan0,prefill=CPU");
    const size_t size = 48u << 20;
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(tandem), size);
    ASSERT_NE(buffer, nullptr);
    SharedBuffer* shared = SharedBuffers::instance().find(buffer);
    ASSERT_NE(shared, nullptr);
    ASSERT_EQ(shared->regions.size(), 1u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(shared->regions[0]->base()) % 4096, 0u);
    [[maybe_unused]] const size_t before = resident_bytes();
    for (size_t i = 0; i < size; i += 4096) shared->regions[0]->base()[i] = static_cast<char>(i >> 12);
    [[maybe_unused]] const size_t grown = resident_bytes() - before;
    for (const size_t offset : {size_t{0}, size_t{4096} * 77, size - 4096}) {
        ggml_tensor tensor = bytes_of(buffer, offset, 1);
        char byte = 0;
        ggml_backend_tensor_get(&tensor, &byte, 0, 1);
        EXPECT_EQ(byte, static_cast<char>(offset >> 12));
        byte = static_cast<char>(byte + 1);
        ggml_backend_tensor_set(&tensor, &byte, 0, 1);
        EXPECT_EQ(shared->regions[0]->base()[offset], byte);
    }
    // one copy: reading all of it through the owner makes nothing new resident
    std::vector<char> all(size);
    ggml_tensor tensor = bytes_of(buffer, 0, size);
    [[maybe_unused]] const size_t reading = resident_bytes();
    ggml_backend_tensor_get(&tensor, all.data(), 0, size);
    // a sanitizer's own memory beside what the program touches is resident too
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LE(resident_bytes() - reading, size + (8u << 20));  // `all` itself
    EXPECT_LE(grown, size + (8u << 20));
#endif
    ggml_backend_buffer_free(buffer);
}

TEST_F(TandemOnVulkan, TensorsArePlacedAsTheStrictestMemberWants) {
    ggml_backend_dev_t tandem = device_of("owner=Vulkan0,prefill=CPU");
    const size_t strictest =
        std::max(ggml_backend_buft_get_alignment(type_),
                 ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(ggml_backend_dev_by_name("CPU"))));
    ggml_context* context = ggml_init({ggml_tensor_overhead() * 8, nullptr, true});
    std::vector<ggml_tensor*> tensors;
    for (const int64_t elements : {1, 3, 5, 7}) tensors.push_back(ggml_new_tensor_1d(context, GGML_TYPE_F32, elements));
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(context, ggml_backend_dev_buffer_type(tandem));
    ASSERT_NE(buffer, nullptr);
    const SharedBuffer* shared = SharedBuffers::instance().find(buffer);
    for (const ggml_tensor* tensor : tensors) EXPECT_EQ(shared->offset_of(tensor) % strictest, 0u);
    EXPECT_TRUE(shared->layout->overlaps().empty());
    EXPECT_EQ(ggml_backend_buffer_get_alignment(buffer), strictest);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
}

// Two tandems of one owner: the type of the buffers, which both share, places tensors for the guests of both.
TEST_F(TandemOnVulkan, AStricterGuestOfAnotherTandemCountsToo) {
    ggml_backend_dev_t tandem = device_of("owner=Vulkan0");
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(tandem);
    const size_t before = ggml_backend_buft_get_alignment(type);
    static ggml_backend_buffer_type strict = *ggml_backend_dev_buffer_type(ggml_backend_dev_by_name("CPU"));
    strict.iface.get_alignment = [](ggml_backend_buffer_type_t) -> size_t { return 4096; };
    ask_all_members(type_, {&strict});
    ASSERT_LT(before, 4096u);
    EXPECT_EQ(ggml_backend_buft_get_alignment(type), 4096u);

    // more tensors than the rounding up of a buffer could hide
    constexpr int count = 1000;
    ggml_context* context = ggml_init({ggml_tensor_overhead() * (count + 1), nullptr, true});
    for (int i = 0; i < count; ++i) ggml_new_tensor_1d(context, GGML_TYPE_F32, 1);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(context, type);
    ASSERT_NE(buffer, nullptr);
    EXPECT_GE(ggml_backend_buffer_get_size(buffer), size_t{count} * 4096);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
}

TEST_F(TandemOnVulkan, EachMemberAloneAndSplit) {
    const RunOptions options{.prompt = 40, .answer = 4};
    const ModelRun cpu = run_model("CPU", options);
    const ModelRun vulkan = run_model("Vulkan0", options);
    ASSERT_FALSE(vulkan.failed);
    const double apart = mean_divergence(cpu, vulkan);
    EXPECT_EQ(run_model("owner=Vulkan0,min=16", options).logits, vulkan.logits) << "the owner alone";
    EXPECT_EQ(run_model("owner=Vulkan0,prefill=CPU,decode=CPU,min=16", options).logits, cpu.logits)
        << "the guest alone";
    for (const char* choice : {"owner=Vulkan0,prefill=CPU,min=16", "owner=Vulkan0,decode=CPU,min=16,staged=1"}) {
        const ModelRun split = run_model(choice, options);
        ASSERT_FALSE(split.failed);
        EXPECT_TRUE(same_top(cpu, split, 0.3f)) << choice;  // the members differ by up to 0.25 themselves
        EXPECT_LE(mean_divergence(vulkan, split), std::max(0.0006, 1.2 * apart)) << choice;
    }
    EXPECT_EQ(run_model("owner=Vulkan0,decode=CPU,min=1,staged=1", options).logits, vulkan.logits)
        << "inputs with the graph";
    EXPECT_GT(tandem_counts().back().staged_writes, 8u);
    EXPECT_EQ(run_model("owner=Vulkan0,decode=CPU,min=1,staged=1,upload=1K", options).logits, vulkan.logits)
        << "large inputs at once, small ones with the graph";
    EXPECT_GT(tandem_counts().back().staged_writes, 8u);
    EXPECT_GT(tandem_counts().back().direct_writes, 8u);
    for (const Counts& counts : tandem_counts()) EXPECT_EQ(counts.shared_bytes, 0u);
}

// Another plan at each ubatch would be a wait for the graph before it. llama.cpp aborts there when it is asked to.
TEST_F(TandemOnVulkan, OnePlanOfTheMemoryServesBothPhases) {
    ::setenv("GGML_SCHED_DEBUG_REALLOC", "1", 1);
    const ModelRun run = run_model("owner=Vulkan0,decode=CPU,min=16", {.prompt = 40, .answer = 3});
    ::unsetenv("GGML_SCHED_DEBUG_REALLOC");
    EXPECT_FALSE(run.failed);
}

// The inputs of an ubatch wait for the one before it: what else it needs is made meanwhile, whoever computes it.
TEST_F(TandemOnVulkan, TheNextUbatchIsPreparedWhileAMemberWorks) {
    const RunOptions options{.prompt = 80, .answer = 1};  // ubatches of 32, 32 and 16 tokens
    for (const std::string choice : {"owner=Vulkan0,decode=CPU,min=8", "owner=Vulkan0,prefill=CPU,min=8,staged=1"}) {
        const auto prepared = [&] {
            for (const Counts& counts : tandem_counts())
                if (counts.tandem == ggml_backend_dev_name(device_of(choice))) return counts.prepared;
            return uint64_t{0};
        };
        const uint64_t before = prepared();
        ASSERT_FALSE(run_model(choice, options).failed) << choice;
        // the second ubatch may take the graph of the first again, the third has another shape
        EXPECT_GE(prepared() - before, 1u) << choice;
        EXPECT_LE(prepared() - before, 2u) << choice;
    }
}

// Software Vulkan binds 128 MiB of a tensor at most: some graphs go to the guest then, which is right too.
TEST_F(TandemOnVulkan, ACacheAboveFourGibibytes) {
    if (available_memory() < (8ull << 30)) GTEST_SKIP() << "8 GiB of free memory are needed";
    const std::string choice = "owner=Vulkan0,prefill=CPU,min=16";
    const ModelRun run = run_model(choice, {.prompt = 20, .answer = 2, .cache_bytes = 9ull << 29});
    ASSERT_FALSE(run.failed);
    const ModelRun short_run = run_model(choice, {.prompt = 20, .answer = 2});
    EXPECT_TRUE(same_top(short_run, run, 0.3f));
    EXPECT_LE(mean_divergence(short_run, run), 0.0006);
}

TEST_F(TandemOnVulkan, AFailedGraphIsRepeatedOnTheOtherMember) {
    const RunOptions options{.prompt = 20, .answer = 3};
    const ModelRun vulkan = run_model("Vulkan0", options);
    const ModelRun cpu = run_model("CPU", options);
    EXPECT_EQ(run_model("owner=Vulkan0,prefill=CPU,decode=CPU,fault=compute/CPU/0/1000", options).logits,
              vulkan.logits);
    // inputs that went to the memory at once are still there
    const std::string uploaded = "owner=Vulkan0,prefill=CPU,decode=CPU,staged=1,upload=1,fault=compute/CPU/0/1000";
    EXPECT_EQ(run_model(uploaded, options).logits, vulkan.logits);
    const ModelRun one = run_model("owner=Vulkan0,prefill=CPU,decode=CPU,fault=compute/CPU/2", options);
    ASSERT_FALSE(one.failed);
    EXPECT_TRUE(same_top(cpu, one, 0.3f));
}

}  // namespace
}  // namespace onebit::tandem

int main(int argc, char** argv) {
    // ggml-vulkan leaves software devices out unless they are named
    setenv("GGML_VK_VISIBLE_DEVICES", "0", 0);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
