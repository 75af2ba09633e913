#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/devices_text.h"
#include "engine/plan.h"

namespace onebit {
namespace {

struct Pool {
    std::string name;
    std::vector<const PlanRow*> rows;
    uint64_t needed = 0, free_bytes = 0;
    bool known = false;
};

uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

uint64_t needed_of(const PlanRow& row) { return add(add(row.weights, row.kv_cache), row.compute); }

std::vector<Pool> pools_of(const Plan& plan) {
    std::vector<Pool> pools;
    for (const PlanRow& row : plan.rows) {
        const std::string& name = row.pool.empty() ? row.device : row.pool;
        auto pool = std::find_if(pools.begin(), pools.end(), [&name](const Pool& one) { return one.name == name; });
        if (pool == pools.end()) pool = pools.insert(pools.end(), Pool{name, {}, 0, 0, false});
        pool->rows.push_back(&row);
        pool->needed = add(pool->needed, needed_of(row));
        pool->free_bytes = std::max(pool->free_bytes, row.free_bytes);
        pool->known = pool->known || row.total_bytes != 0;
    }
    return pools;
}

std::string devices_of(const Pool& pool) {
    std::string text;
    for (const PlanRow* row : pool.rows) text += (text.empty() ? "" : " + ") + row->device;
    return text;
}

bool row_fits(const PlanRow& row) { return row.total_bytes == 0 || needed_of(row) <= row.free_bytes; }

std::string shortage(const std::string& what, uint64_t needed, uint64_t free_bytes) {
    return what + " needs " + bytes_text(needed) + " and has " + bytes_text(free_bytes) +
           " free: " + bytes_text(needed - free_bytes) + " too little";
}

int64_t left(uint64_t free_bytes, uint64_t needed) {
    constexpr auto most = static_cast<uint64_t>(INT64_MAX);
    return free_bytes >= needed ? static_cast<int64_t>(std::min(free_bytes - needed, most))
                                : -static_cast<int64_t>(std::min(needed - free_bytes, most));
}

}  // namespace

int64_t slack_bytes(const Plan& plan) {
    int64_t least = INT64_MAX;
    for (const Pool& pool : pools_of(plan)) {
        if (!pool.known) continue;
        least = std::min(least, left(pool.free_bytes, pool.needed));
        for (const PlanRow* row : pool.rows) {
            if (row->total_bytes != 0) least = std::min(least, left(row->free_bytes, needed_of(*row)));
        }
    }
    return least;
}

void judge(Plan& plan) {
    plan.fits = true;
    for (const Pool& pool : pools_of(plan)) {
        if (!pool.known) {
            plan.notes.push_back(devices_of(pool) + " does not say how much memory it has: taken as enough");
            continue;
        }
        bool told = false;
        for (const PlanRow* row : pool.rows) {
            if (row_fits(*row)) continue;
            plan.notes.push_back(shortage(row->device, needed_of(*row), row->free_bytes));
            plan.fits = false;
            told = true;
        }
        if (told || pool.needed <= pool.free_bytes) continue;
        plan.notes.push_back(
            shortage(devices_of(pool) + " together, which share one memory,", pool.needed, pool.free_bytes));
        plan.fits = false;
    }
}

std::string to_table(const Plan& plan) {
    std::vector<std::vector<std::string>> rows{{"device", "weights", "KV cache", "compute", "needed", "free", "fits"}};
    const std::vector<Pool> pools = pools_of(plan);
    for (const PlanRow& row : plan.rows) {
        const bool known = row.total_bytes != 0;
        rows.push_back({row.device, bytes_text(row.weights), bytes_text(row.kv_cache), bytes_text(row.compute),
                        bytes_text(needed_of(row)), known ? bytes_text(row.free_bytes) : "unknown",
                        !known          ? "unknown"
                        : row_fits(row) ? "yes"
                                        : "no"});
    }
    for (const Pool& pool : pools) {
        if (pool.rows.size() < 2) continue;
        rows.push_back({devices_of(pool), "", "", "", bytes_text(pool.needed),
                        pool.known ? bytes_text(pool.free_bytes) : "unknown",
                        !pool.known                      ? "unknown"
                        : pool.needed <= pool.free_bytes ? "yes"
                                                         : "no"});
    }
    return text_table(rows);
}

std::string slots_text(const Plan& plan) {
    const std::string tokens = std::to_string(plan.context) + " tokens";
    if (plan.slots <= 1) return "context of " + tokens;
    const std::string slots = std::to_string(plan.slots) + " slots";
    return plan.shared ? "context of " + tokens + " for all " + slots : slots + " of " + tokens + " each";
}

std::string plan_to_json(const Plan& plan) {
    using Json = nlohmann::ordered_json;
    Json rows = Json::array();
    for (const PlanRow& row : plan.rows) {
        const bool known = row.total_bytes != 0;
        rows.push_back({{"device", row.device},
                        {"pool", row.pool},
                        {"weights", row.weights},
                        {"kv_cache", row.kv_cache},
                        {"compute", row.compute},
                        {"needed", needed_of(row)},
                        {"free_bytes", known ? Json(row.free_bytes) : Json(nullptr)},
                        {"total_bytes", known ? Json(row.total_bytes) : Json(nullptr)}});
    }
    Json notes = Json::array();
    for (const std::string& note : plan.notes) notes.push_back(printable(note));
    return Json{{"fits", plan.fits},        {"model", printable(plan.model)}, {"context", plan.context},
                {"slots", plan.slots},      {"table", to_table(plan)},        {"rows", std::move(rows)},
                {"notes", std::move(notes)}}
               .dump(2) +
           "\n";
}

}  // namespace onebit
