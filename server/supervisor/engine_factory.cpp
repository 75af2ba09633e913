#include "server/supervisor/engine_factory.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "server/supervisor/run_program.h"

namespace onebit {
namespace {

class RunningEngine final : public EngineHandle {
public:
    explicit RunningEngine(std::unique_ptr<EngineProcess> process) : process_(std::move(process)) {}
    EngineStatus status() const override { return process_->status(); }
    std::filesystem::path socket() const override { return process_->socket(); }
    uint64_t generation() const override { return process_->generation(); }
    std::vector<DeviceMemory> memory() const override { return process_->memory(); }
    TandemReport tandem() const override { return process_->tandem(); }
    std::shared_ptr<StreamTable> streams() const override { return process_->streams(); }
    Result<void> wait_ready(std::chrono::milliseconds limit) const override { return process_->wait_ready(limit); }
    void request_begun() override { process_->request_begun(); }
    void request_ended() override { process_->request_ended(); }
    void stop() override { process_->stop(); }
    void limit_stop(std::chrono::steady_clock::time_point kill_at) override { process_->limit_stop(kill_at); }

private:
    std::unique_ptr<EngineProcess> process_;
};

std::string last_lines(const std::string& text) {
    std::string tail = text.size() > 600 ? text.substr(text.size() - 600) : text;
    while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.pop_back();
    for (char& c : tail)
        if (c == '\n') c = '|';
    return printable(tail);
}

void log_lines(LogLevel level, const std::string& text) {
    size_t begin = 0;
    while (begin < text.size()) {
        size_t end = std::min(text.find('\n', begin), text.size());
        if (end > begin) log_line(level, "server", std::string_view(text).substr(begin, end - begin));
        begin = end + 1;
    }
}

std::string describe(const SlotShape& shape) {
    return std::to_string(shape.slots) + (shape.slots == 1 ? " slot of " : " slots of ") +
           std::to_string(shape.context) + " tokens";
}

// What llama.cpp is told about slots, unless its own arguments say otherwise.
std::string describe_start(const ModelTarget& target, const SlotShape& shape) {
    std::string text = slots_are_ours(target) ? describe(shape) : "slots as its llama.cpp arguments say";
    std::string devices;
    for (const std::string& device : target.settings.devices) devices += (devices.empty() ? "" : ", ") + device;
    if (has_tandem(target.settings)) devices += ", prompts on " + target.settings.prefill_device.front();
    return text + (devices.empty() ? "" : ", on " + devices);
}

}  // namespace

EngineFactory::Verdict EngineFactory::ask_plan(const ModelTarget& target, const SlotShape& shape) const {
    Verdict verdict;
    Result<ProgramResult> asked = run_program(program, plan_arguments(target, shape), plan_limit, cancel);
    if (!asked.ok()) {
        verdict.reason = asked.error().message();
        return verdict;
    }
    if (asked->exit_code == 0 || asked->exit_code == 3) {
        auto json = nlohmann::json::parse(asked->output, nullptr, false);
        if (json.is_object() && json.contains("fits") && json["fits"].is_boolean()) {
            verdict.known = true;
            verdict.fits = json["fits"].get<bool>() && asked->exit_code == 0;
            if (json.contains("table") && json["table"].is_string()) verdict.table = json["table"].get<std::string>();
            if (json.contains("notes") && json["notes"].is_array())
                for (const auto& note : json["notes"])
                    if (note.is_string())
                        verdict.reason += (verdict.reason.empty() ? "" : "; ") + note.get<std::string>();
            return verdict;
        }
    }
    verdict.reason = asked->outcome();
    if (std::string tail = last_lines(asked->error_output); !tail.empty()) verdict.reason += ": " + tail;
    return verdict;
}

Result<std::unique_ptr<EngineHandle>> EngineFactory::make(const ModelTarget& wanted) const {
    ModelTarget target = wanted;
    if (const std::string reason = use_stored_route(&target); !reason.empty())
        log_verbose("server", "model " + target.id + ": auto: " + reason);
    std::vector<SlotShape> shapes = slot_shapes(target);
    SlotShape chosen = shapes.front();
    if (check_memory) {
        bool decided = false;
        Verdict last;
        for (const SlotShape& shape : shapes) {
            last = ask_plan(target, shape);
            if (last.known && !last.fits) continue;
            if (!last.known)
                log_warning("server",
                            "model " + target.id +
                                ": whether it fits into memory is not known, because '1bit plan' ended with " +
                                last.reason + "; starting it all the same");
            chosen = shape;
            decided = true;
            break;
        }
        if (cancel && *cancel)
            return Error{ErrorCode::unavailable, "model '" + target.id + "'", "a running server",
                         "one that is stopping", ""};
        if (!decided) {
            log_lines(LogLevel::error, last.table);
            return Error{ErrorCode::no_space, "model '" + target.id + "'",
                         "room for it with " + describe(shapes.back()),
                         last.reason.empty() ? "too little free memory" : last.reason,
                         "1bit plan " + target.id + " shows the table; --no-memory-check starts it all the same"};
        }
        if (chosen.context != shapes.front().context || chosen.slots != shapes.front().slots)
            log_warning("server", "model " + target.id + ": " + describe(shapes.front()) + " do not fit, taking " +
                                      describe(chosen));
    }
    EngineOptions options;
    options.program = program;
    options.arguments = engine_arguments(target, chosen, offline);
    options.runtime_folder = runtime_folder;
    options.label = target.id;
    options.start_timeout = start_timeout;
    options.hang_timeout = hang_timeout;
    options.strict = target.settings.strict.value_or(false);
    for (const auto& [member, reason] : target.settings.excluded) options.excluded.push_back({member, reason});
    if (announce) announce("model " + target.id + ": " + describe_start(target, chosen));
    Result<std::unique_ptr<EngineProcess>> process = EngineProcess::start(std::move(options));
    if (!process.ok()) return process.error();
    return std::unique_ptr<EngineHandle>(std::make_unique<RunningEngine>(std::move(*process)));
}

}  // namespace onebit
