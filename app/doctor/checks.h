// The groups of checks; each appends its findings. A check that does not apply to the machine adds none.
#pragma once

#include <string>
#include <vector>

#include "app/doctor/doctor.h"

namespace onebit {

enum class GpuVendor { amd, nvidia, intel };
const char* to_string(GpuVendor vendor);

// A GPU as the PCI bus shows it, driver or not.
struct PciGpu {
    PciAddress address;
    GpuVendor vendor = GpuVendor::amd;
    std::string driver;  // of the kernel; empty: none
};

// Display controllers and accelerators of the three vendors, sorted by address.
std::vector<PciGpu> pci_gpus(const Machine& machine);

bool in_container(const Machine& machine);

void check_gpus(const std::vector<PciGpu>& gpus, Findings& findings);
void check_device_files(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings);
void check_gtt(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings);
// Returns the devices that Vulkan sees.
std::vector<VulkanDevice> check_vulkan(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings);
void check_hrx(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings);
// Starts each driver of hrx in a child process.
Result<std::vector<HrxAttempt>> hrx_attempts_in_child();
void check_engine(const Machine& machine, const std::vector<VulkanDevice>& seen, Findings& findings);
void check_memory(const Machine& machine, Findings& findings);
void check_processor(const Machine& machine, Findings& findings);
void check_folders(const Machine& machine, Findings& findings);
void check_port(const Machine& machine, Findings& findings);
void check_versions(const Machine& machine, Findings& findings);

// Manifests of Vulkan drivers in the order in which the loader reads them.
struct Manifest {
    std::string file;
    std::string library;  // as dlopen takes it; empty with a problem
    std::string problem;
};
struct Manifests {
    std::string variable;  // that names them; empty: the folders of the system and the user
    std::vector<Manifest> list;
};
Manifests vulkan_manifests(const Machine& machine);

}  // namespace onebit
