// The drivers of this build, started once when first asked for and never stopped: other code of the process may use
// the same library, and drivers do not unload cleanly.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hrx/runtime/driver.h"

namespace onebit::hrx::runtime {

std::unique_ptr<Driver> make_amdgpu_driver();
std::unique_ptr<Driver> make_cuda_driver();

uint32_t driver_count();
const char* driver_name(uint32_t index);  // nullptr past the end

struct StartedDriver {
    Driver* driver = nullptr;
    const std::vector<ProbeEntry>* tried = nullptr;
    Result<void> started;
};
// not_found for a name that is no driver of this build. Safe from any thread.
Result<StartedDriver> start_driver(const std::string& name);
// The same, but the error of a driver that does not start.
Result<Driver*> started_driver(const std::string& name);

// For tests of faults that no real driver causes on demand: a further driver of this process.
void add_driver(std::unique_ptr<Driver> driver);

}  // namespace onebit::hrx::runtime
