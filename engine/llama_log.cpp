#include "engine/llama_log.h"

#include "base/log.h"
#include "llama.h"
#include "log.h"

namespace onebit {

struct LlamaLog::Previous {
    ggml_log_callback callback = nullptr;
    void* data = nullptr;
    int verbosity = 0;
};

LlamaLog::LlamaLog() : previous_(std::make_unique<Previous>()) {
    llama_log_get(&previous_->callback, &previous_->data);
    previous_->verbosity = common_log_get_verbosity_thold();
    llama_log_set([](ggml_log_level level, const char* text, void* self) { receive(level, text, self); }, this);
    common_log_set_verbosity_thold(log_level() >= LogLevel::verbose ? LOG_LEVEL_INFO : LOG_LEVEL_OUTPUT - 1);
}

LlamaLog::~LlamaLog() {
    llama_log_set(previous_->callback, previous_->data);
    common_log_set_verbosity_thold(previous_->verbosity);
}

std::string LlamaLog::first_error() const {
    const std::lock_guard lock(mutex_);
    return error_;
}

void LlamaLog::receive(int level, const char* text, void* self) {
    auto& log = *static_cast<LlamaLog*>(self);
    const std::lock_guard lock(log.mutex_);
    // a line comes in parts, the later ones at level CONT
    log.line_ += text;
    if (log.line_.empty() || log.line_.back() != '\n') return;
    log.line_.pop_back();
    if (level == GGML_LOG_LEVEL_ERROR && log.error_.empty()) log.error_ = log.line_;
    log_verbose("llama", log.line_);
    log.line_.clear();
}

}  // namespace onebit
