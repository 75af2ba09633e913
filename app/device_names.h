// What a person calls a device, as ggml calls it. Drivers may crash, so a child process asks them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/devices.h"
#include "server/config.h"

namespace onebit {

// What `1bit devices --json` prints. Error invalid when it is not that.
Result<std::vector<PhysicalDevice>> parse_devices(std::string_view json);

// Asks `program devices --json`. Error unavailable with how the child ended and what it said last.
Result<std::vector<PhysicalDevice>> ask_devices(const std::filesystem::path& program);

// wanted: names in any case, backends, PCI addresses, "cpu" or "none"; empty: those that are chosen by default, {"CPU"}
// without a GPU. Error not_found for a device that is not there: it is never replaced by another.
Result<std::vector<std::string>> ggml_names(const std::vector<std::string>& wanted,
                                            const std::vector<PhysicalDevice>& devices);

// Writes down what stored routes know the devices by, and when the user left them open (no name, or auto), the backends
// of the one GPU between which a stored route may choose.
void note_devices(ServeConfig& config, bool left_open, const std::vector<PhysicalDevice>& devices);
bool left_open(const std::vector<std::string>& wanted);

// The names that --exclude-member gave, as ggml has them. Error as ggml_names; without devices they stay as they are.
Result<void> settle_excluded(ServeConfig& config, const std::vector<PhysicalDevice>& devices);

// Whether all of them mean the CPU, which needs no driver to be asked.
bool cpu_only(const std::vector<std::string>& wanted);

}  // namespace onebit
