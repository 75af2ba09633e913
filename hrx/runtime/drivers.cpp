#include "hrx/runtime/drivers.h"

#include <deque>
#include <mutex>
#include <optional>

namespace onebit::hrx::runtime {
namespace {

struct Entry {
    std::unique_ptr<Driver> driver;
    std::vector<ProbeEntry> tried;
    std::optional<Result<void>> started;
};

struct Registry {
    std::mutex mutex;
    std::deque<Entry> entries;  // addresses stay

    Registry() {
        add(make_amdgpu_driver());
        add(make_cuda_driver());
    }
    void add(std::unique_ptr<Driver> driver) { entries.push_back({std::move(driver), {}, {}}); }
};

// Never destroyed: threads of a driver may outlive main().
Registry& registry() {
    static auto* const instance = new Registry;
    return *instance;
}

}  // namespace

uint32_t driver_count() {
    Registry& drivers = registry();
    const std::lock_guard lock(drivers.mutex);
    return static_cast<uint32_t>(drivers.entries.size());
}

const char* driver_name(uint32_t index) {
    Registry& drivers = registry();
    const std::lock_guard lock(drivers.mutex);
    return index < drivers.entries.size() ? drivers.entries[index].driver->name() : nullptr;
}

Result<StartedDriver> start_driver(const std::string& name) {
    Registry& drivers = registry();
    const std::lock_guard lock(drivers.mutex);
    std::string known;
    for (Entry& entry : drivers.entries) {
        known += (known.empty() ? "" : ", ") + std::string(entry.driver->name());
        if (name != entry.driver->name()) continue;
        if (!entry.started) entry.started = entry.driver->start(entry.tried);
        return StartedDriver{entry.driver.get(), &entry.tried, *entry.started};
    }
    return Error{ErrorCode::not_found, "driver '" + name + "'", "one of " + known, "no driver of that name", ""};
}

Result<Driver*> started_driver(const std::string& name) {
    auto found = start_driver(name);
    if (!found.ok()) return std::move(found).error();
    if (!found->started.ok()) return found->started.error();
    return found->driver;
}

void add_driver(std::unique_ptr<Driver> driver) {
    Registry& drivers = registry();
    const std::lock_guard lock(drivers.mutex);
    drivers.add(std::move(driver));
}

}  // namespace onebit::hrx::runtime
