// Looks at this machine for what keeps 1bit from its GPUs, memory or disk. Each finding says what mends it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/device_id.h"
#include "base/result.h"
#include "engine/devices_vulkan.h"

namespace onebit {

enum class FindingStatus { ok, warning, problem };
const char* to_string(FindingStatus status);

struct Finding {
    std::string check;  // short name, such as "vulkan loader"
    FindingStatus status = FindingStatus::ok;
    std::string found;
    std::string remedy;  // a command or one sentence; empty when there is nothing to do
};
using Findings = std::vector<Finding>;

// What is known of the program itself.
struct BuildFacts {
    std::string version, llama_version, compiler;
    bool vulkan = false, cuda = false;
    bool cooperative_matrices = false;  // in the Vulkan shaders
};

// A library that a driver of hrx tried.
struct HrxAttempt {
    std::string driver, origin, library;
    std::string call, detail;  // the call that failed and its result; the version of one that started
    bool started = false;
};

// All that the checks look at, so that tests can give them another machine.
struct Machine {
    std::string root;                                // before /proc, /sys, /dev, /etc, /usr; empty but in tests
    std::map<std::string, std::string> environment;  // variables that matter, when set
    std::string user, home;
    std::string kernel;
    uint64_t memory_lock_limit = 0, open_files_limit = 0;  // UINT64_MAX: none
    BuildFacts build;
    uint16_t port = 8080;
    std::optional<uint64_t> wanted_gtt_bytes;  // on an APU; unset: a default by the amount of memory

    std::function<bool(const std::string& path)> may_open;  // for reading and writing, by this user
    std::function<std::optional<uint64_t>(const std::filesystem::path&)>
        disk_free;  // of the nearest folder that exists
    std::function<Result<std::filesystem::path>()> cache_folder, models_folder;

    // These load drivers; in the real machine each runs in a child with a time limit.
    std::function<Result<void>(const std::string& library)> load_library;
    std::function<Result<std::vector<VulkanDevice>>()> vulkan_devices;
    std::function<Result<std::vector<HrxAttempt>>()> hrx_attempts;  // may be empty
    std::function<Result<std::string>()> engine_devices;            // names as the engine lists them; may be empty
};

// The machine this runs on. engine_devices is left for the caller, who links the engine.
Machine this_machine();

// Runs every check. None of them changes anything, except that the cache folder is made when it is missing.
Findings examine(const Machine& machine);

std::string findings_to_text(const Findings& findings);
std::string findings_to_json(const Findings& findings);
// One text to paste into a report: versions first; the home folder and the user's name are left out.
std::string findings_to_report(const Machine& machine, const Findings& findings);
bool any_problem(const Findings& findings);

}  // namespace onebit
