// The stand-in for libhsa-runtime64, opened as a driver opens it, with a queue, memory and kernels for tests.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "hrx/hsa/hsa_api.h"

namespace hsa_testing {

// The library as a driver opens it.
class Library {
public:
    Library() : handle_(dlopen(ONEBIT_TEST_LIBHSA, RTLD_NOW | RTLD_LOCAL)) { EXPECT_NE(handle_, nullptr) << dlerror(); }
    template <typename F>
    F find(const char* name) {
        auto* found = reinterpret_cast<F>(dlsym(handle_, name));
        EXPECT_NE(found, nullptr) << name;
        return found;
    }

private:
    void* handle_;
};
inline Library& library() {
    static Library instance;
    return instance;
}
#define HSA(name) (library().find<decltype(&name)>(#name))

inline std::vector<std::uint8_t> kernel_file() {
    std::ifstream file(ONEBIT_TEST_KERNELS, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class Hsa : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(HSA(hsa_init)(), HSA_STATUS_SUCCESS);
        HSA(hsa_iterate_agents)
        (
            [](hsa_agent_t agent, void* out) {
                hsa_device_type_t type{};
                HSA(hsa_agent_get_info)(agent, HSA_AGENT_INFO_DEVICE, &type);
                auto* self = static_cast<Hsa*>(out);
                (type == HSA_DEVICE_TYPE_GPU ? self->gpu_ : self->cpu_) = agent;
                return HSA_STATUS_SUCCESS;
            },
            this);
        HSA(hsa_amd_agent_iterate_memory_pools)
        (
            gpu_,
            [](hsa_amd_memory_pool_t pool, void* out) {
                bool allocates = false;
                HSA(hsa_amd_memory_pool_get_info)(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocates);
                if (!allocates) return HSA_STATUS_SUCCESS;
                static_cast<Hsa*>(out)->pool_ = pool;
                return HSA_STATUS_INFO_BREAK;
            },
            this);
        ASSERT_NE(gpu_.handle, 0u);
        ASSERT_NE(pool_.handle, 0u);
    }
    void TearDown() override {
        if (queue_ != nullptr) {
            EXPECT_EQ(HSA(hsa_queue_destroy)(queue_), HSA_STATUS_SUCCESS);
        }
        if (executable_.handle != 0) {
            EXPECT_EQ(HSA(hsa_executable_destroy)(executable_), HSA_STATUS_SUCCESS);
        }
        EXPECT_EQ(HSA(hsa_shut_down)(), HSA_STATUS_SUCCESS);
    }

    void* allocate(std::size_t bytes) {
        void* memory = nullptr;
        EXPECT_EQ(HSA(hsa_amd_memory_pool_allocate)(pool_, bytes, 0, &memory), HSA_STATUS_SUCCESS);
        return memory;
    }
    hsa_signal_t signal(std::int64_t value) {
        hsa_signal_t created{};
        EXPECT_EQ(HSA(hsa_signal_create)(value, 0, nullptr, &created), HSA_STATUS_SUCCESS);
        return created;
    }
    void load() {
        const auto file = kernel_file();
        hsa_code_object_reader_t reader{};
        ASSERT_EQ(HSA(hsa_code_object_reader_create_from_memory)(file.data(), file.size(), &reader),
                  HSA_STATUS_SUCCESS);
        ASSERT_EQ(HSA(hsa_executable_create_alt)(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR, nullptr,
                                                 &executable_),
                  HSA_STATUS_SUCCESS);
        ASSERT_EQ(HSA(hsa_executable_load_agent_code_object)(executable_, gpu_, reader, nullptr, nullptr),
                  HSA_STATUS_SUCCESS);
        ASSERT_EQ(HSA(hsa_executable_freeze)(executable_, nullptr), HSA_STATUS_SUCCESS);
        ASSERT_EQ(HSA(hsa_code_object_reader_destroy)(reader), HSA_STATUS_SUCCESS);
    }
    std::uint64_t kernel(const char* name) {
        hsa_executable_symbol_t symbol{};
        EXPECT_EQ(HSA(hsa_executable_get_symbol_by_name)(executable_, name, &gpu_, &symbol), HSA_STATUS_SUCCESS);
        std::uint64_t object = 0;
        EXPECT_EQ(HSA(hsa_executable_symbol_get_info)(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object),
                  HSA_STATUS_SUCCESS);
        return object;
    }
    void create_queue() {
        auto on_error = [](hsa_status_t status, hsa_queue_t*, void* data) {
            static_cast<Hsa*>(data)->error_.store(status);
        };
        ASSERT_EQ(HSA(hsa_queue_create)(gpu_, 64, HSA_QUEUE_TYPE_MULTI, on_error, this, 0, 0, &queue_),
                  HSA_STATUS_SUCCESS);
    }
    // Reserves a slot, fills it, and publishes the header last, as HSA asks.
    template <typename Packet>
    std::uint64_t submit(Packet packet, hsa_packet_type_t type, bool ring = true) {
        const std::uint64_t index = HSA(hsa_queue_add_write_index_relaxed)(queue_, 1);
        while (index - HSA(hsa_queue_load_read_index_scacquire)(queue_) >= queue_->size) std::this_thread::yield();
        auto* slot = static_cast<std::uint8_t*>(queue_->base_address) + index % queue_->size * 64;
        packet.header = HSA_PACKET_TYPE_INVALID;
        std::memcpy(slot + 2, reinterpret_cast<const std::uint8_t*>(&packet) + 2, 62);
        reinterpret_cast<std::atomic<std::uint16_t>*>(slot)->store(
            static_cast<std::uint16_t>(type | 1u << HSA_PACKET_HEADER_BARRIER), std::memory_order_release);
        if (ring) HSA(hsa_signal_store_screlease)(queue_->doorbell_signal, static_cast<std::int64_t>(index));
        return index;
    }
    hsa_kernel_dispatch_packet_t vec_add(float* c, const float* a, const float* b, int n, hsa_signal_t done) {
        struct Arguments {
            float* c;
            const float *a, *b;
            int n;
        };
        auto* arguments = static_cast<Arguments*>(allocate(sizeof(Arguments)));
        *arguments = {c, a, b, n};
        hsa_kernel_dispatch_packet_t packet{};
        packet.setup = 1;
        packet.workgroup_size_x = 256;
        packet.workgroup_size_y = packet.workgroup_size_z = 1;
        packet.grid_size_x = static_cast<std::uint32_t>((n + 255) / 256 * 256);
        packet.grid_size_y = packet.grid_size_z = 1;
        packet.kernel_object = kernel("vec_add.kd");
        packet.kernarg_address = arguments;
        packet.completion_signal = done;
        return packet;
    }
    std::int64_t wait(hsa_signal_t done, std::int64_t below = 1) {
        return HSA(hsa_signal_wait_scacquire)(done, HSA_SIGNAL_CONDITION_LT, below, 60'000'000'000,
                                              HSA_WAIT_STATE_BLOCKED);
    }
    // Waits until the queue has reported an error.
    hsa_status_t wait_error() {
        for (int k = 0; k < 6000 && error_.load() == HSA_STATUS_SUCCESS; ++k) usleep(10'000);
        return error_.load();
    }

    hsa_agent_t gpu_{}, cpu_{};
    hsa_amd_memory_pool_t pool_{};
    hsa_executable_t executable_{};
    hsa_queue_t* queue_ = nullptr;
    std::atomic<hsa_status_t> error_{HSA_STATUS_SUCCESS};
};

}  // namespace hsa_testing
