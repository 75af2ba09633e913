#include "tests/hrx-cts/fake_driver.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace onebit::hrx::runtime {
namespace {

Error broken(const char* call) { return Error{ErrorCode::io, call, "FAKE_SUCCESS", "FAKE_BROKEN (7)", ""}; }

class FakeMemory final : public Memory {
public:
    explicit FakeMemory(uint64_t bytes) : bytes_(bytes) {
        host = bytes_.data();
        address = reinterpret_cast<uint64_t>(host);
        size = bytes;
        fake().live_memory++;
    }
    ~FakeMemory() override { fake().live_memory--; }

private:
    std::vector<std::byte> bytes_;
};

class FakeImage final : public Image {
public:
    FakeImage() { fake().live_images++; }
    ~FakeImage() override { fake().live_images--; }
    Result<Kernel> find(const std::string& name) override {
        Kernel kernel;
        kernel.name = name;
        return kernel;
    }
};

class FakeRecording final : public Recording {
public:
    FakeRecording() { fake().live_recordings++; }
    ~FakeRecording() override { fake().live_recordings--; }
};

class FakeChannel final : public Channel {
public:
    Result<std::shared_ptr<Completion>> submit(Recording*, const Arguments&,
                                               std::span<const std::shared_ptr<Completion>>) override {
        if (fake().fail_submit) return broken("fakeSubmit");
        fake().submits++;
        auto completion = std::make_shared<FakeCompletion>();
        completion->finished = fake().finish_at_once.load();
        const std::lock_guard lock(fake().mutex);
        fake().open.push_back(completion);
        return std::shared_ptr<Completion>(completion);
    }
};

class FakeDevice final : public DriverDevice {
public:
    FakeDevice() {
        std::strcpy(info_.driver, "fake");
        std::strcpy(info_.name, "fake device");
        std::strcpy(info_.architecture, "fake");
        info_.max_workgroup_size = 1024;
        for (int i = 0; i < 3; ++i) info_.max_workgroup_dimension[i] = info_.max_workgroup_count[i] = 1024;
        info_.memory_bytes = info_.max_buffer_bytes = 1 << 20;
        info_.lds_bytes = 65536;
        fake().live_devices++;
    }
    ~FakeDevice() override { fake().live_devices--; }
    const hrx_device_info& info() const override { return info_; }
    uint64_t ticks_per_second() const override { return 1000; }
    std::string builtin_target() const override { return "fake"; }
    Result<uint64_t> free_memory() override { return broken("fakeFree"); }
    Result<std::unique_ptr<Memory>> allocate(hrx_memory, bool, uint64_t size) override {
        if (fake().fail_allocate) return Error{ErrorCode::no_space, "fakeAlloc", "FAKE_SUCCESS", "FAKE_FULL (2)", ""};
        return std::unique_ptr<Memory>(std::make_unique<FakeMemory>(size));
    }
    Result<std::unique_ptr<Memory>> import_fd(hrx_fd_kind, int, uint64_t, uint64_t, uint64_t) override {
        return broken("fakeImport");
    }
    Result<std::unique_ptr<Memory>> import_host(void*, uint64_t) override { return broken("fakeImport"); }
    Result<ExportedMemory> export_fd(const Memory&, hrx_fd_kind) override { return broken("fakeExport"); }
    Result<void> write(const Memory&, uint64_t, const void*, uint64_t) override { return broken("fakeWrite"); }
    Result<void> read(const Memory&, uint64_t, void*, uint64_t) override { return broken("fakeRead"); }
    Result<std::unique_ptr<Image>> load(std::span<const std::byte>) override {
        return std::unique_ptr<Image>(std::make_unique<FakeImage>());
    }
    Result<std::unique_ptr<Recording>> record(std::span<const Launch>, size_t) override {
        if (fake().fail_record) return broken("fakeRecord");
        return std::unique_ptr<Recording>(std::make_unique<FakeRecording>());
    }
    Result<std::unique_ptr<Channel>> create_channel() override {
        if (fake().fail_channel) return broken("fakeQueue");
        return std::unique_ptr<Channel>(std::make_unique<FakeChannel>());
    }

private:
    hrx_device_info info_{};
};

class FakeDriver final : public Driver {
public:
    const char* name() const override { return "fake"; }
    Result<void> start(std::vector<ProbeEntry>& tried) override {
        tried.push_back({"test", "none", "", "fake 1.0", true});
        return {};
    }
    Result<uint32_t> device_count() override { return 1u; }
    Result<std::unique_ptr<DriverDevice>> open(uint32_t) override {
        return std::unique_ptr<DriverDevice>(std::make_unique<FakeDevice>());
    }
};

}  // namespace

FakeControl& fake() {
    static auto* const control = new FakeControl;
    return *control;
}

void FakeControl::finish_all() {
    const std::lock_guard lock(mutex);
    for (const auto& completion : open) {
        if (const auto living = completion.lock()) living->finished = true;
    }
}

void FakeControl::lose_all() {
    const std::lock_guard lock(mutex);
    for (const auto& completion : open) {
        if (const auto living = completion.lock()) living->lost = true;
    }
}

void FakeControl::mark_open() {
    const std::lock_guard lock(mutex);
    marked_ = open;
}

void FakeControl::lose_marked() {
    const std::lock_guard lock(mutex);
    for (const auto& completion : marked_) {
        if (const auto living = completion.lock()) living->lost = true;
    }
}

Result<bool> FakeCompletion::wait(uint64_t nanoseconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(nanoseconds, 1e9));
    do {
        if (finished) return true;
        if (lost) return Error{ErrorCode::cancelled, "fakeWait", "FAKE_SUCCESS", "FAKE_LOST (9)", ""};
        if (nanoseconds != 0) std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

void add_fake_driver() {
    static const bool added = [] {
        add_driver(std::make_unique<FakeDriver>());
        return true;
    }();
    static_cast<void>(added);
}

}  // namespace onebit::hrx::runtime
