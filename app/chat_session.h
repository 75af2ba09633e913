// One private engine for `1bit run`: started for it alone, reached over its socket, gone with it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chat_client.h"
#include "app/interrupt.h"
#include "server/catalog/catalog.h"
#include "server/config.h"
#include "server/supervisor/engine_folder.h"
#include "server/supervisor/engine_handle.h"

namespace onebit {

class ChatSession {
public:
    // config: devices as ggml names them. Waits until the model is loaded, with its progress on a terminal.
    // Errors of resolve_model and of the engine's start; no_space when the plan says that it cannot fit; cancelled.
    static Result<std::unique_ptr<ChatSession>> start(const ServeConfig& config, const CatalogFolders& folders,
                                                      const std::string& model, const Interrupt& interrupt);
    ~ChatSession();

    Result<ChatAnswer> ask(const ChatRequest& request, const OnText& on_text, const Interrupt& interrupt);
    const std::string& model() const { return model_; }
    const std::vector<std::string>& devices() const { return devices_; }

private:
    ChatSession() = default;
    std::optional<EngineFolder> folder_;
    std::unique_ptr<EngineHandle> engine_;
    std::string model_;
    std::vector<std::string> devices_;
};

}  // namespace onebit
