#include "app/chat_session.h"

#include <algorithm>
#include <cstdio>

#include "app/output.h"
#include "app/version.h"
#include "base/log.h"
#include "server/supervisor/engine_factory.h"
#include "server/supervisor/model_target.h"

namespace onebit {
namespace {

constexpr std::chrono::milliseconds kLook{100};

// Replaces itself on the line until it is destroyed.
class LoadingLine {
public:
    explicit LoadingLine(std::string model)
        : model_(std::move(model)), shown_(error_is_terminal() && log_level() >= LogLevel::info) {}
    ~LoadingLine() {
        if (shown_ && drawn_ >= 0) std::fputs("\r\x1b[K", stderr);
    }
    void draw(double progress) {
        int percent = int(progress * 100);
        if (!shown_ || percent == drawn_) return;
        drawn_ = percent;
        std::fprintf(stderr, "\rloading %s: %d %%\x1b[K", printable(model_).c_str(), percent);
    }

private:
    std::string model_;
    bool shown_;
    int drawn_ = -1;
};

}  // namespace

Result<std::unique_ptr<ChatSession>> ChatSession::start(const ServeConfig& config, const CatalogFolders& folders,
                                                        const std::string& model, const Interrupt& interrupt) {
    Result<ModelTarget> target = resolve_model(config, folders, model, false);
    if (!target) return target.error();
    Result<EngineFolder> folder = EngineFolder::create("1bit-run-");
    if (!folder) return folder.error();

    std::unique_ptr<ChatSession> session(new ChatSession);
    session->folder_ = *std::move(folder);
    session->model_ = target->id;
    session->devices_ = target->settings.devices;
    for (const std::string& device : target->settings.prefill_device)
        if (std::find(session->devices_.begin(), session->devices_.end(), device) == session->devices_.end())
            session->devices_.push_back(device);
    LoadingLine line(target->id);
    line.draw(0);
    // what the engine says while it loads is of use only when it fails, and then it is in the error
    LogLevel level = log_level();
    if (level == LogLevel::info) set_log_level(LogLevel::warning);
    EngineFactory factory;
    factory.program = program_path();
    factory.runtime_folder = session->folder_->path();
    factory.offline = config.offline;
    factory.check_memory = config.check_memory;
    factory.start_timeout = config.start_timeout;
    factory.cancel = &interrupt.flag();
    Result<std::unique_ptr<EngineHandle>> engine = factory.make(*target);
    if (!engine) {
        set_log_level(level);
        return engine.error();
    }
    session->engine_ = *std::move(engine);
    for (;;) {
        Result<void> ready = session->engine_->wait_ready(kLook);
        if (ready) break;
        EngineStatus status = session->engine_->status();
        Error error = ready.error();
        if (interrupt.pending())
            error = {ErrorCode::cancelled, "1bit run", "", "interrupted while the model loaded", ""};
        else if (status.restarts > 0 || (error.code != ErrorCode::timeout && !status.last_failure.empty()))
            error = {error.code == ErrorCode::usage ? ErrorCode::usage : ErrorCode::unavailable, "model " + target->id,
                     "an engine that starts", status.whole_failure(), "1bit doctor looks for causes"};
        else if (error.code == ErrorCode::timeout) {
            line.draw(status.load_progress);
            continue;
        }
        set_log_level(level);
        return error;
    }
    set_log_level(level);
    return session;
}

ChatSession::~ChatSession() {
    LogLevel level = log_level();
    if (level == LogLevel::info) set_log_level(LogLevel::error);
    if (engine_) engine_->stop();
    engine_.reset();
    set_log_level(level);
}

Result<ChatAnswer> ChatSession::ask(const ChatRequest& request, const OnText& on_text, const Interrupt& interrupt) {
    // the engine's remarks on a request, such as that it was cancelled, would stand in the middle of the answer
    LogLevel level = log_level();
    if (level == LogLevel::info) set_log_level(LogLevel::error);
    engine_->request_begun();
    Result<ChatAnswer> answer = chat(engine_->socket(), request, on_text, interrupt.flag());
    engine_->request_ended();
    set_log_level(level);
    if (answer || answer.error().code != ErrorCode::unavailable) return answer;
    Error error = answer.error();
    if (std::string failure = engine_->status().whole_failure(); !failure.empty()) error.found = failure;
    return error;
}

}  // namespace onebit
