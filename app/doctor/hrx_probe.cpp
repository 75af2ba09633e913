#include <nlohmann/json.hpp>

#include "app/doctor/checks.h"
#include "app/doctor/probe.h"
#include "hrx/runtime/hrx.h"

namespace onebit {
namespace {

using Json = nlohmann::json;
constexpr std::chrono::seconds hrx_limit{60};

void note_attempt(void* user, const hrx_probe_entry* entry) {
    static_cast<Json*>(user)->push_back({printable(entry->driver), printable(entry->origin), printable(entry->library),
                                         printable(entry->call), printable(entry->detail), entry->started});
}

}  // namespace

Result<std::vector<HrxAttempt>> hrx_attempts_in_child() {
    const ProbeResult result = run_probe(
        [](std::string* output) {
            Json list = Json::array();
            for (uint32_t i = 0; const char* driver = hrx_driver_name(i); ++i) {
                // a driver that does not start is what the entries tell
                static_cast<void>(hrx_driver_probe(driver, note_attempt, &list));
            }
            *output = list.dump();
            return 0;
        },
        hrx_limit);
    if (!result.ok()) {
        return Error{ErrorCode::unavailable, "drivers of hrx", "a list", "the probe " + result.reason(), ""};
    }
    std::vector<HrxAttempt> attempts;
    const Json list = Json::parse(result.output, nullptr, false);
    if (!list.is_array()) return attempts;
    for (const Json& one : list) attempts.push_back({one[0], one[1], one[2], one[3], one[4], one[5]});
    return attempts;
}

}  // namespace onebit
