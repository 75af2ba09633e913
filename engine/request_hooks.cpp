#include "engine/request_hooks.h"

#include <memory>
#include <string>
#include <utility>

#include "engine/next_function.h"
#include "engine/response_wait.h"
#include "engine/tandem_account.h"
#include "server-queue.h"  // llama.cpp, tools/server

namespace onebit {
namespace {

// The timings may be in one object, or in one of the events of a stream, where some dialects have them under "data".
void add_to_timings(json& answer, const json& ours) {
    if (answer.is_array()) {
        for (size_t i = 0; i < answer.size(); ++i) add_to_timings(answer[i], ours);
        return;
    }
    if (!answer.is_object()) return;
    if (answer.contains("timings") && answer["timings"].is_object()) answer["timings"]["onebit"] = ours;
    if (answer.contains("data")) add_to_timings(answer["data"], ours);
}

struct FinalWithAccount final : server_task_result_cmpl_final {
    FinalWithAccount(server_task_result_cmpl_final&& result, std::string text)
        : server_task_result_cmpl_final(std::move(result)), account(std::move(text)) {}
    json to_json() override {
        json answer = server_task_result_cmpl_final::to_json();
        add_to_timings(answer, json::parse_no_throw(account));
        return answer;
    }
    std::string account;
};

void complete(server_task_result_ptr& result) {
    if (auto* final = dynamic_cast<server_task_result_cmpl_final*>(result.get())) {
        std::string text = account_json(final->id_slot);
        if (!text.empty()) result = std::make_unique<FinalWithAccount>(std::move(*final), std::move(text));
        return;
    }
    auto* error = dynamic_cast<server_task_result_error*>(result.get());
    if (error == nullptr || error->err_type != ERROR_TYPE_SERVER) return;
    if (const std::string why = last_batch_error(); !why.empty()) error->err_msg += " " + why;
}

}  // namespace

void use_request_hooks() {}

}  // namespace onebit

void server_response::send(server_task_result_ptr&& result) {
    using Send = void (*)(server_response*, server_task_result_ptr &&);
    static const auto next = onebit::next_function<Send>(
        "_ZN15server_response4sendEOSt10unique_ptrI18server_task_resultSt14default_deleteIS1_EE");
    onebit::complete(result);
    const int id_task = result->id;
    next(this, std::move(result));
    onebit::wake_for_result(this, id_task);
}

void server_queue::pop_deferred_task(int id_slot) {
    using Pop = void (*)(server_queue*, int);
    static const auto next = onebit::next_function<Pop>("_ZN12server_queue17pop_deferred_taskEi");
    onebit::forget_slot(id_slot);
    next(this, id_slot);
}
