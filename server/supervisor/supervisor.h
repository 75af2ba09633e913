// The supervisor's parts put together: listener, access rules, fleet, proxy, and the routes that need no engine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "server/supervisor/access.h"
#include "server/supervisor/fatal_requests.h"
#include "server/supervisor/fleet.h"
#include "server/supervisor/http_server.h"
#include "server/supervisor/metrics.h"
#include "server/supervisor/proxy.h"
#include "server/supervisor/server.h"

namespace onebit {

// What tests replace.
struct SupervisorParts {
    Fleet::MakeEngine make_engine;
    Fleet::Resolve resolve;  // unset: the catalog
    std::function<void(const std::string& id, const Error& error)> load_failed;
    ProxyTimes times;
};

class Supervisor {
public:
    Supervisor(ServerContext context, SupervisorParts parts);
    ~Supervisor();  // stop()

    Result<uint16_t> bind();
    // Starts what is loaded from the beginning: the fixed model, or models_at_start(). Does not wait.
    Result<void> start_models();
    void serve();  // blocks until stop()

    void drain();  // new requests get 503, running ones go on
    bool has_served() const { return fleet_->any_ever_ready(); }
    bool quiet() const;  // no request is in flight
    // Ends all requests with an error, all connections and engines; those are killed at that time, if they did not end
    // before.
    void stop(Fleet::Clock::time_point kill_at = Fleet::Clock::time_point::max());
    void kill_engines();  // a stop() that runs waits for none of them any more

    // Reads the configuration again; on an error the old one stays in force.
    Result<void> reload();

    const Fleet& fleet() const { return *fleet_; }

private:
    struct State {
        ServeConfig config;
        AccessRules access;
    };
    struct Context {  // of the request that this thread serves
        std::shared_ptr<RequestScope> scope;
        std::shared_ptr<const State> state;
        std::string path;  // as in the request line, without the query
        std::string content_type;
    };
    static Context& context();

    std::shared_ptr<const State> state() const;
    void set_up_routes();
    httplib::Server::HandlerResponse before_routing(httplib::Request& request, httplib::Response& response);
    void on_error(const httplib::Request& request, httplib::Response& response);

    // supervisor_requests.cpp
    void on_get(const httplib::Request& request, httplib::Response& response);
    void on_body(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader);
    bool read_body(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader,
                   std::string& body);
    void to_engine(const httplib::Request& request, httplib::Response& response, std::string body);
    void get_from_engine(const httplib::Request& request, httplib::Response& response);
    void refuse(httplib::Response& response, const Error& error, std::chrono::milliseconds retry_after);

    // routes.cpp
    bool own_get(const httplib::Request& request, httplib::Response& response);
    bool own_post(const httplib::Request& request, httplib::Response& response, const std::string& body);
    void health(httplib::Response& response) const;
    using SeeModel = std::function<void(const std::string& id, const std::vector<std::string>& aliases,
                                        const ModelEntry& entry, const EngineView* engine)>;
    void each_model(const SeeModel& see) const;  // that a request may name
    void list_models_route(httplib::Response& response) const;
    void model_route(const std::string& name, httplib::Response& response) const;
    void metrics_route(httplib::Response& response) const;
    void ps_route(httplib::Response& response);
    nlohmann::json engine_json(const EngineView& view);
    // What the engine says of itself, asked once; no object if it does not answer.
    nlohmann::json engine_props(const std::string& id, uint64_t generation, const std::filesystem::path& socket);
    bool knows_tools(const Fleet::Lease& lease);  // whether its chat template has tools, as far as is known

    ServerContext context_;
    SupervisorParts parts_;
    mutable std::mutex state_mutex_;
    std::shared_ptr<const State> state_;
    Metrics metrics_;
    FatalRequests fatal_;
    std::unique_ptr<Fleet> fleet_;
    HttpServer http_;
    std::atomic<bool> draining_{false}, stopped_{false}, told_of_patterns_{false};
    std::mutex reload_mutex_;
    std::mutex props_mutex_;
    std::map<std::pair<std::string, uint64_t>, std::string> props_;  // of an engine by generation
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace onebit
