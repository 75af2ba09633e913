// Makes the engine of a model: asks first whether it fits into memory, then starts the process.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "server/supervisor/engine_handle.h"
#include "server/supervisor/model_target.h"

namespace onebit {

struct EngineFactory {
    std::filesystem::path program;
    std::filesystem::path runtime_folder;
    bool offline = false;
    bool check_memory = true;
    std::chrono::seconds start_timeout{600}, hang_timeout{30};
    std::function<void(const std::string& line)> announce;  // what the user should see of a start; may be empty
    const std::atomic<bool>* cancel = nullptr;              // set: the question about memory is given up
    std::chrono::milliseconds plan_limit{120000};

    // Tries the shapes of slot_shapes() in turn. Error no_space whose remedy holds what the plan suggests when none
    // fits; the plan's table is logged. A plan that cannot be made (a driver that crashes, no answer) is a warning with
    // its outcome and the end of its error output, and the engine is started all the same. Safe from any thread.
    // Devices that were left open are those of the stored route, if there is one.
    Result<std::unique_ptr<EngineHandle>> make(const ModelTarget& wanted) const;

    // The verdict alone.
    struct Verdict {
        bool known = false, fits = true;
        std::string table, reason;
    };
    Verdict ask_plan(const ModelTarget& target, const SlotShape& shape) const;
};

}  // namespace onebit
