// Memory faults of AMD GPUs reach the process and not a queue: kept here, so that waits on any queue end.
#pragma once

#include <optional>
#include <string>

namespace onebit::hrx::runtime::amdgpu {

// Once, after hsa_init. Another user of the library may have the only handler; then faults stay unknown to us.
void watch_faults();

// What the fault was, if there has been one. Safe from any thread.
std::optional<std::string> fault();

}  // namespace onebit::hrx::runtime::amdgpu
