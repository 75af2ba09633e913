// The routes that the supervisor answers itself: health, models, metrics, and its own under /onebit.
#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "server/supervisor/engine_client.h"
#include "server/supervisor/known_routes.h"
#include "server/supervisor/responses.h"
#include "server/supervisor/supervisor.h"

namespace onebit {

using nlohmann::json;

namespace {

constexpr auto kEngineQuestion = std::chrono::milliseconds(2000);

double rounded(double value) { return std::round(value * 1000) / 1000; }

// llama.cpp's word for the state, which its page and clients know.
const char* status_word(const EngineView& view) {
    switch (view.status.state) {
        case EngineState::ready:
            return "loaded";
        case EngineState::starting:
            return view.failed ? "failed" : "loading";
        case EngineState::failed:
            return "failed";
        default:
            return "unloaded";
    }
}

json unavailable_object(const std::string& message) {
    return {{"message", message}, {"type", "unavailable_error"}, {"code", 503}};
}

json model_entry(const std::string& id, const std::vector<std::string>& aliases, const ModelEntry& entry,
                 const EngineView* engine) {
    json meta = {{"size", entry.bytes},
                 {"n_params", entry.parameters},
                 {"n_ctx_train", entry.context_length},
                 {"ftype", entry.quantization},
                 {"architecture", entry.architecture}};
    json modalities = json::array({"text"});
    if (!entry.projector.empty()) modalities.push_back("image");
    json status = {{"value", engine ? status_word(*engine) : "unloaded"}};
    if (engine && engine->status.state == EngineState::starting)
        status["progress"] = rounded(engine->status.load_progress);
    return {{"id", id},           {"aliases", aliases},
            {"object", "model"},  {"created", 0},
            {"owned_by", "1bit"}, {"origin", to_string(entry.origin)},
            {"in_cache", true},   {"meta", meta},
            {"status", status},   {"architecture", {{"input_modalities", modalities}}}};
}

// The devices that compute: of a tandem the one that makes tokens first, then the one that reads prompts.
json devices_of(const EngineView& view) {
    if (view.tandem.name.empty()) {
        std::vector<std::string> names = view.settings.devices;
        for (const std::string& name : view.settings.prefill_device)
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        for (const ExcludedMember& one : view.status.excluded) std::erase(names, one.member);
        return names;
    }
    json names = json::array();
    for (uint64_t place : {view.tandem.decode, view.tandem.prefill}) {
        if (place >= view.tandem.members.size()) continue;
        std::string name = printable(view.tandem.members[place].name);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

json tandem_json(const TandemReport& tandem) {
    const auto name = [&](uint64_t place) {
        return place < tandem.members.size() ? printable(tandem.members[place].name) : std::string();
    };
    json members = json::array(), fallbacks = json::object();
    for (const TandemMember& member : tandem.members)
        members.push_back({{"member", printable(member.name)},
                           {"graphs", member.graphs},
                           {"prefill_tokens", member.prefill_tokens},
                           {"decode_tokens", member.decode_tokens},
                           {"errors", member.errors},
                           {"dropped", member.dropped}});
    for (const auto& [reason, count] : tandem.fallbacks) fallbacks[printable(reason)] = count;
    return {{"name", printable(tandem.name)},
            {"owner", name(tandem.owner)},
            {"prefill", name(tandem.prefill)},
            {"decode", name(tandem.decode)},
            {"min_tokens", tandem.min_tokens},
            {"handoffs", tandem.handoffs},
            {"handoff_microseconds", tandem.handoff_us},
            {"repeats", tandem.repeats},
            {"refused_graphs", tandem.refused},
            {"shared_bytes", tandem.shared_bytes},
            {"fallbacks", fallbacks},
            {"members", members}};
}

json ollama_like_entry(const std::string& id, const ModelEntry& entry) {
    json capabilities = json::array({"completion"});
    if (!entry.projector.empty()) capabilities.push_back("multimodal");
    return {{"name", id},
            {"model", id},
            {"modified_at", ""},
            {"size", std::to_string(entry.bytes)},
            {"digest", ""},
            {"type", "model"},
            {"description", entry.name},
            {"tags", json::array()},
            {"capabilities", capabilities},
            {"parameters", ""},
            {"details",
             {{"parent_model", ""},
              {"format", "gguf"},
              {"family", entry.architecture},
              {"families", json::array({entry.architecture})},
              {"parameter_size", entry.parameters ? std::to_string(entry.parameters) : ""},
              {"quantization_level", entry.quantization}}}};
}

}  // namespace

bool Supervisor::own_get(const httplib::Request& request, httplib::Response& response) {
    std::string path = request.target.substr(0, request.target.find('?'));
    if (path == "/health" || path == "/v1/health") {
        health(response);
    } else if (path == "/v1/models" || path == "/models") {
        list_models_route(response);
    } else if (const std::string_view name = model_of_path(path); !name.empty()) {
        model_route(httplib::decode_path_component(std::string(name)), response);
    } else if (path == "/metrics") {
        metrics_route(response);
    } else if (path == "/onebit/ps") {
        ps_route(response);
    } else if (path == "/" || path == "/index.html") {
        answer_error(response, 404, "not_found_error", "this build has no web page; the API is under /v1");
    } else {
        return false;
    }
    return true;
}

bool Supervisor::own_post(const httplib::Request& request, httplib::Response& response, const std::string& body) {
    std::string path = request.target.substr(0, request.target.find('?'));
    if (!path.starts_with("/onebit/")) return false;
    if (path == "/onebit/reload") {
        if (Result<void> done = reload(); !done.ok())
            answer_error(response, done.error());
        else
            answer_json(response, 200, {{"status", "reloaded"}});
        return true;
    }
    if (path != "/onebit/load" && path != "/onebit/unload") {
        answer_no_route(response, path);
        return true;
    }
    json asked = json::parse(body, nullptr, false);
    if (!asked.is_object() || !asked.contains("model") || !asked["model"].is_string()) {
        answer_error(response, 400, "invalid_request_error", "request body: expected {\"model\": \"NAME\"}");
        return true;
    }
    std::string name = asked["model"].get<std::string>();
    bool load = path == "/onebit/load";
    Result<void> done = load ? fleet_->load(name) : fleet_->unload(name, state()->config.drain_timeout);
    if (!done.ok())
        answer_error(response, done.error());
    else
        answer_json(response, load ? 202 : 200,
                    {{"status", load ? "loading" : "unloaded"}, {"model", printable(name)}});
    return true;
}

void Supervisor::health(httplib::Response& response) const {
    std::vector<EngineView> engines = fleet_->engines();
    json loaded = json::array();
    const EngineView *loading = nullptr, *failed = nullptr, *stalled = nullptr;
    for (const EngineView& engine : engines) {
        if (engine.status.state == EngineState::ready && engine.status.stalled)
            stalled = &engine;
        else if (engine.status.state == EngineState::ready && !engine.failed)
            loaded.push_back(engine.id);
        else if (engine.failed || engine.status.state == EngineState::failed)
            failed = &engine;
        else if (engine.status.state == EngineState::starting)
            loading = &engine;
    }
    if (draining_) {
        response.set_header("Retry-After", "5");
        return answer_json(response, 503,
                           {{"status", "stopping"}, {"error", unavailable_object("the server is stopping")}});
    }
    if (!loaded.empty()) return answer_json(response, 200, {{"status", "ok"}, {"models", loaded}});
    if (loading) {
        auto wait = std::max<int64_t>(1, (loading->status.retry_after.count() + 999) / 1000);
        response.set_header("Retry-After", std::to_string(wait));
        const bool again = !loading->status.last_failure.empty();
        json body = {{"status", again ? "restarting" : "loading"},
                     {"model", loading->id},
                     {"progress", rounded(loading->status.load_progress)},
                     {"error", unavailable_object(again ? "the engine ended and is started again" : "Loading model")}};
        if (loading->status.restarts > 0) body["restarts"] = loading->status.restarts;
        if (!loading->status.last_failure.empty()) body["last_failure"] = loading->status.last_failure;
        return answer_json(response, 503, body);
    }
    if (stalled) {
        response.set_header("Retry-After", "5");
        return answer_json(response, 503,
                           {{"status", "stalled"},
                            {"model", stalled->id},
                            {"error", unavailable_object("the engine gives no sign of progress")}});
    }
    if (failed) {
        std::string reason = failed->failed && failed->failure.code != ErrorCode::internal
                                 ? failed->failure.message()
                                 : failed->status.last_failure;
        response.set_header("Retry-After", "10");
        return answer_json(
            response, 503,
            {{"status", "failed"}, {"model", failed->id}, {"reason", reason}, {"error", unavailable_object(reason)}});
    }
    if (fleet_->fixed()) {
        response.set_header("Retry-After", "1");
        return answer_json(response, 503,
                           {{"status", "loading"}, {"progress", 0.0}, {"error", unavailable_object("Loading model")}});
    }
    answer_json(response, 200, {{"status", "idle"}, {"models", json::array()}});
}

void Supervisor::each_model(const SeeModel& see) const {
    std::shared_ptr<const State> now = state();
    std::vector<EngineView> engines = fleet_->engines();
    auto engine_of = [&](const std::string& id) -> const EngineView* {
        for (const EngineView& engine : engines)
            if (engine.id == id) return &engine;
        return nullptr;
    };
    auto add = [&](const std::string& id, const std::vector<std::string>& aliases, const ModelEntry& entry) {
        see(id, aliases, entry, engine_of(id));
    };
    if (fleet_->fixed()) {
        for (const EngineView& engine : engines) add(engine.id, engine.aliases, engine.entry);
    } else {
        std::map<std::string, bool> listed;
        for (const auto& [key, model] : now->config.models) {
            if (parts_.resolve) break;
            Result<ModelTarget> target = resolve_model(now->config, context_.folders, key, false);
            if (!target.ok() || listed.count(target->id)) continue;
            listed[target->id] = true;
            add(target->id, target->aliases, target->entry);
        }
        for (const EngineView& engine : engines) {
            if (listed.count(engine.id)) continue;
            listed[engine.id] = true;
            add(engine.id, engine.aliases, engine.entry);
        }
        for (const ModelEntry& entry : list_models(context_.folders)) {
            if (!entry.problem.empty() || listed.count(entry.id)) continue;
            add(entry.id, entry.aliases, entry);
        }
    }
}

void Supervisor::list_models_route(httplib::Response& response) const {
    json data = json::array(), models = json::array();
    each_model([&](const auto& id, const auto& aliases, const ModelEntry& entry, const EngineView* engine) {
        data.push_back(model_entry(id, aliases, entry, engine));
        models.push_back(ollama_like_entry(id, entry));
    });
    answer_json(response, 200, {{"object", "list"}, {"data", data}, {"models", models}});
}

void Supervisor::model_route(const std::string& name, httplib::Response& response) const {
    json found;
    bool certain = false;  // an id goes before another model's alias
    const auto look_for = [&](const std::string& wanted) {
        each_model([&](const auto& id, const auto& aliases, const ModelEntry& entry, const EngineView* engine) {
            const bool alias = std::find(aliases.begin(), aliases.end(), wanted) != aliases.end();
            if (certain || (id != wanted && (!alias || !found.is_null()))) return;
            found = model_entry(id, aliases, entry, engine);
            certain = id == wanted;
        });
    };
    look_for(name);
    // as short as a request may write it
    if (found.is_null() && !parts_.resolve)
        if (auto target = resolve_model(state()->config, context_.folders, name, true); target.ok())
            look_for(target->id);
    if (!found.is_null()) return answer_json(response, 200, found);
    answer_error(response, Error{ErrorCode::not_found, "model '" + printable(name) + "'", "a name of this server",
                                 "none such", "GET /v1/models lists them"});
}

void Supervisor::metrics_route(httplib::Response& response) const {
    std::vector<EngineView> engines = fleet_->engines();
    std::vector<std::pair<std::string, std::string>> texts;
    for (const EngineView& engine : engines) {
        if (engine.status.state != EngineState::ready) continue;
        if (auto text = engine_get(engine.socket, "/metrics", kEngineQuestion))
            texts.emplace_back(engine.id, std::move(*text));
    }
    response.status = 200;
    response.set_content(metrics_.render(engines, texts), "text/plain; version=0.0.4; charset=utf-8");
}

json Supervisor::engine_props(const std::string& id, uint64_t generation, const std::filesystem::path& socket) {
    std::string text;
    {
        std::lock_guard lock(props_mutex_);
        auto known = props_.find({id, generation});
        if (known != props_.end()) text = known->second;
    }
    if (text.empty()) {
        auto asked = engine_get(socket, "/props", kEngineQuestion);
        if (!asked) return {};
        text = std::move(*asked);
        std::lock_guard lock(props_mutex_);
        std::erase_if(props_, [&](const auto& entry) { return entry.first.first == id; });
        props_[{id, generation}] = text;
    }
    return json::parse(text, nullptr, false);
}

bool Supervisor::knows_tools(const Fleet::Lease& lease) {
    const json props = engine_props(lease.model(), lease.engine().generation(), lease.engine().socket());
    const json caps = props.is_object() ? props.value("chat_template_caps", json()) : json();
    if (!caps.is_object()) return true;
    // either is enough for llama.cpp to find a form for calls
    return caps.value("supports_tools", json(true)) != false || caps.value("supports_tool_calls", json(true)) != false;
}

json Supervisor::engine_json(const EngineView& view) {
    json result = {{"id", view.id},
                   {"aliases", view.aliases},
                   {"state", view.failed ? "failed" : to_string(view.status.state)},
                   {"pid", view.status.pid},
                   {"file", view.entry.files.empty() ? "" : view.entry.files.front().string()},
                   {"size_bytes", view.entry.bytes},
                   {"resident_bytes", view.status.resident_bytes},
                   {"cpu_milliseconds", view.status.cpu_milliseconds},
                   {"load_progress", rounded(view.status.load_progress)},
                   {"load_seconds", rounded(view.load_seconds)},
                   {"loads", view.loads},
                   {"devices", devices_of(view)},
                   {"pinned", view.pinned},
                   {"requests_in_flight", view.requests},
                   {"restarts", view.status.restarts},
                   {"hangs", view.status.hangs},
                   {"graphs", view.status.graphs},
                   {"last_failure", view.failed ? view.failure.message() : view.status.last_failure},
                   {"last_output", view.status.last_output}};
    result["memory"] = json::array();
    for (const DeviceMemory& one : view.memory)
        result["memory"].push_back({{"device", printable(one.device)},
                                    {"layers", one.layers},
                                    {"weights_bytes", one.weights},
                                    {"kv_cache_bytes", one.kv_cache},
                                    {"compute_bytes", one.compute}});
    if (!view.tandem.name.empty()) result["tandem"] = tandem_json(view.tandem);
    result["excluded_members"] = json::array();
    for (const ExcludedMember& one : view.status.excluded)
        result["excluded_members"].push_back({{"member", printable(one.member)}, {"reason", printable(one.reason)}});
    result["keep_alive_left_seconds"] =
        view.keep_alive_left.count() < 0 ? json(nullptr) : json(view.keep_alive_left.count() / 1000.0);
    if (view.status.state != EngineState::ready) return result;
    json props = engine_props(view.id, view.generation, view.socket);
    if (!props.is_object()) return result;
    json settings = props.value("default_generation_settings", json::object());
    if (settings.is_object() && settings.contains("n_ctx")) result["context_per_slot"] = settings["n_ctx"];
    if (props.contains("total_slots")) result["slots"] = props["total_slots"];
    if (props.contains("build_info")) result["build"] = props["build_info"];
    return result;
}

void Supervisor::ps_route(httplib::Response& response) {
    json engines = json::array();
    for (const EngineView& view : fleet_->engines()) engines.push_back(engine_json(view));
    std::shared_ptr<const State> now = state();
    answer_json(
        response, 200,
        {{"engines", engines},
         {"max_models", now->config.max_models},
         {"mode", fleet_->fixed() ? "fixed" : "on demand"},
         {"default_model", fleet_->fixed() && !engines.empty() ? engines[0]["id"] : json(now->config.default_model)},
         {"requests_in_flight", metrics_.in_flight()},
         {"connections", http_.connections()},
         {"uptime_seconds",
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_).count()}});
}

}  // namespace onebit
