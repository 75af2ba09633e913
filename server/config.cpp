#include "server/config.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "base/nearest.h"

namespace onebit {
namespace {

// Far above any real file; keeps hostile ones from costing time in the parser.
constexpr size_t kLargestFile = 256 << 10;

struct Fault {
    Error error;
};

Error usage(std::string subject, std::string expected, std::string found, std::string remedy = {}) {
    return {ErrorCode::usage, std::move(subject), std::move(expected), std::move(found), std::move(remedy)};
}

std::string shortened(std::string text) {
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return "'" + text + "'";
}

std::string described(const YAML::Node& node) {
    if (node.IsSequence()) return "a list";
    if (node.IsMap()) return "a mapping";
    if (node.IsScalar()) return shortened(node.Scalar());
    return "nothing";
}

// Reads one document. Places are named "FILE:LINE: key 'a.b'".
class Reader {
public:
    explicit Reader(std::string_view subject) : subject_(subject) {}

    using Field = std::function<void(const YAML::Node&, const std::string& path)>;
    using Fields = std::vector<std::pair<std::string, Field>>;

    [[noreturn]] void fail(const YAML::Mark& mark, const std::string& path, std::string expected, std::string found,
                           std::string remedy = {}) const {
        std::string subject = subject_;
        if (!mark.is_null()) subject += ":" + std::to_string(mark.line + 1);
        if (!path.empty()) subject += ": key " + shortened(path);
        throw Fault{usage(std::move(subject), std::move(expected), std::move(found), std::move(remedy))};
    }

    void map(const YAML::Node& node, const std::string& path,
             const std::function<void(const std::string& key, const YAML::Node&)>& each) const {
        if (!node.IsMap()) fail(node.Mark(), path, "a mapping of keys to values", described(node));
        std::set<std::string> seen;
        for (const auto& pair : node) {
            if (!pair.first.IsScalar() || pair.first.Scalar().empty())
                fail(pair.first.Mark(), path, "a name as key", described(pair.first));
            const std::string& key = pair.first.Scalar();
            if (!seen.insert(key).second)
                fail(pair.first.Mark(), join(path, key), "each key once", "it a second time", "remove one of them");
            key_mark_ = pair.first.Mark();
            each(key, pair.second);
        }
    }

    void fields(const YAML::Node& node, const std::string& path, const Fields& known) const {
        map(node, path, [&](const std::string& key, const YAML::Node& value) {
            for (const auto& [name, field] : known)
                if (name == key) return field(value, join(path, key));
            std::vector<std::string> names;
            for (const auto& [name, field] : known) names.push_back(name);
            std::string near = nearest_name(key, names), all;
            for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
            fail(key_mark_, join(path, key), "one of " + all, "an unknown key",
                 near.empty() ? "remove it" : "did you mean '" + near + "'?");
        });
    }

    std::string text(const YAML::Node& node, const std::string& path, const char* expected = "a text") const {
        if (!node.IsScalar() || node.Scalar().empty()) fail(place(node), path, expected, described(node));
        return node.Scalar();
    }

    uint64_t number(const YAML::Node& node, const std::string& path, uint64_t least, uint64_t most) const {
        std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
        std::string text = this->text(node, path, expected.c_str());
        uint64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
            fail(place(node), path, expected, shortened(text));
        return value;
    }

    bool truth(const YAML::Node& node, const std::string& path) const {
        std::string text = this->text(node, path, "true or false");
        if (text == "true" || text == "yes" || text == "on") return true;
        if (text == "false" || text == "no" || text == "off") return false;
        fail(place(node), path, "true or false", shortened(text));
    }

    // One text is taken for a list of one.
    std::vector<std::string> texts(const YAML::Node& node, const std::string& path) const {
        if (node.IsScalar()) return {text(node, path)};
        if (!node.IsSequence()) fail(place(node), path, "a list of texts", described(node));
        std::vector<std::string> list;
        for (const auto& item : node) list.push_back(text(item, path + "[" + std::to_string(list.size()) + "]"));
        return list;
    }

    // What one of the parse functions of this file makes of the text.
    template <typename T>
    T parsed(const YAML::Node& node, const std::string& path, Result<T> (*parse)(std::string_view)) const {
        if (!node.IsScalar()) {
            Error error = parse("").error();
            fail(place(node), path, error.expected, described(node));
        }
        Result<T> value = parse(node.Scalar());
        if (!value) fail(place(node), path, value.error().expected, described(node), value.error().remedy);
        return *value;
    }

private:
    static std::string join(const std::string& path, const std::string& key) {
        return path.empty() ? key : path + "." + key;
    }
    // An empty value has no place of its own in yaml-cpp; its key has.
    YAML::Mark place(const YAML::Node& node) const { return node.IsNull() ? key_mark_ : node.Mark(); }

    std::string subject_;
    mutable YAML::Mark key_mark_ = YAML::Mark::null_mark();
};

constexpr uint64_t kMostContext = 1ull << 30;
constexpr uint64_t kMostParallel = 256;  // llama.cpp's own limit of sequences
constexpr uint64_t kMostModels = 64;

Reader::Fields shared_fields(const Reader& r, ModelConfig& to) {
    return {
        {"devices", [&](const YAML::Node& n, const std::string& p) { to.devices = r.texts(n, p); }},
        {"prefill_device", [&](const YAML::Node& n, const std::string& p) { to.prefill_device = {r.text(n, p)}; }},
        {"prefill_min_tokens",
         [&](const YAML::Node& n, const std::string& p) {
             const bool chosen = n.IsScalar() && n.Scalar() == "auto";
             to.prefill_min_tokens = chosen ? 0 : uint32_t(r.number(n, p, 1, kMostContext));
         }},
        {"strict", [&](const YAML::Node& n, const std::string& p) { to.strict = r.truth(n, p); }},
        {"context", [&](const YAML::Node& n, const std::string& p) { to.context = r.parsed(n, p, parse_context); }},
        {"parallel",
         [&](const YAML::Node& n, const std::string& p) { to.parallel = uint32_t(r.number(n, p, 1, kMostParallel)); }},
        {"arguments", [&](const YAML::Node& n, const std::string& p) { to.arguments = r.texts(n, p); }},
    };
}

void read_models(const Reader& r, const YAML::Node& node, const std::string& path, ServeConfig& config) {
    std::set<std::string> names;
    r.map(node, path, [&](const std::string& name, const YAML::Node& value) {
        ModelConfig model;
        Reader::Fields fields = shared_fields(r, model);
        fields.emplace_back("source", [&](const YAML::Node& n, const std::string& p) { model.source = r.text(n, p); });
        fields.emplace_back("pin", [&](const YAML::Node& n, const std::string& p) { model.pin = r.truth(n, p); });
        fields.emplace_back("aliases",
                            [&](const YAML::Node& n, const std::string& p) { model.aliases = r.texts(n, p); });
        fields.emplace_back("keep_alive", [&](const YAML::Node& n, const std::string& p) {
            model.keep_alive = r.parsed(n, p, parse_keep_alive);
        });
        std::string here = path + "." + name;
        if (!value.IsNull()) r.fields(value, here, fields);
        if (model.source.empty()) model.source = name;
        config.models[name] = std::move(model);
        names.insert(name);
    });
    for (const auto& [name, model] : config.models)
        for (const std::string& alias : model.aliases)
            if (!names.insert(alias).second)
                r.fail(node.Mark(), path + "." + name + ".aliases", "a name that no other model has",
                       shortened(alias) + ", which is taken");
}

void read_document(const Reader& r, const YAML::Node& root, ServeConfig& c) {
    using Node = YAML::Node;
    using Path = const std::string&;
    r.fields(
        root, "",
        {
            {"host", [&](const Node& n, Path p) { c.host = r.text(n, p, "an address to listen on"); }},
            {"port", [&](const Node& n, Path p) { c.port = uint16_t(r.number(n, p, 0, 65535)); }},
            {"api_keys",
             [&](const Node& n, Path p) {
                 c.api_keys = r.texts(n, p);
                 if (!std::all_of(c.api_keys.begin(), c.api_keys.end(), is_usable_api_key))
                     r.fail(n.Mark(), p, "keys that a header can carry", "one with spaces around it or several lines");
             }},
            {"cors_origins",
             [&](const Node& n, Path p) {
                 c.cors_origins = r.texts(n, p);
                 for (std::string& one : c.cors_origins) {
                     Result<std::string> origin = parse_origin(one);
                     if (!origin) r.fail(n.Mark(), p, origin.error().expected, shortened(one), origin.error().remedy);
                     one = *std::move(origin);
                 }
             }},
            {"max_request_size",
             [&](const Node& n, Path p) {
                 c.max_request_bytes = r.parsed(n, p, parse_size);
                 if (c.max_request_bytes == 0) r.fail(n.Mark(), p, "at least one byte", described(n));
             }},
            {"read_timeout", [&](const Node& n, Path p) { c.read_timeout = r.parsed(n, p, parse_duration); }},
            {"start_timeout", [&](const Node& n, Path p) { c.start_timeout = r.parsed(n, p, parse_duration); }},
            {"hang_timeout", [&](const Node& n, Path p) { c.hang_timeout = r.parsed(n, p, parse_duration); }},
            {"drain_timeout", [&](const Node& n, Path p) { c.drain_timeout = r.parsed(n, p, parse_duration); }},
            {"model", [&](const Node& n, Path p) { c.model = r.text(n, p, "a model's name or path"); }},
            {"default_model", [&](const Node& n, Path p) { c.default_model = r.text(n, p, "a model's name or path"); }},
            {"preload", [&](const Node& n, Path p) { c.preload = r.texts(n, p); }},
            {"keep_alive", [&](const Node& n, Path p) { c.keep_alive = r.parsed(n, p, parse_keep_alive); }},
            {"max_models", [&](const Node& n, Path p) { c.max_models = uint32_t(r.number(n, p, 1, kMostModels)); }},
            {"offline", [&](const Node& n, Path p) { c.offline = r.truth(n, p); }},
            {"loose_patterns", [&](const Node& n, Path p) { c.loose_patterns = r.truth(n, p); }},
            {"check_memory", [&](const Node& n, Path p) { c.check_memory = r.truth(n, p); }},
            {"defaults", [&](const Node& n, Path p) { r.fields(n, p, shared_fields(r, c.defaults)); }},
            {"models", [&](const Node& n, Path p) { read_models(r, n, p, c); }},
        });
}

// The first line that no text file has, as an error.
Result<void> check_text(std::string_view yaml, std::string_view subject) {
    if (yaml.size() > kLargestFile)
        return usage(std::string(subject), "at most " + std::to_string(kLargestFile >> 10) + " KiB",
                     std::to_string(yaml.size()) + " bytes or more", "check that it is the right file");
    size_t line = 1;
    for (size_t begin = 0; begin < yaml.size(); ++line) {
        size_t end = std::min(yaml.find('\n', begin), yaml.size());
        std::string_view text = yaml.substr(begin, end - begin);
        if (text.ends_with('\r')) text.remove_suffix(1);
        if (printable(text) != text)
            return usage(std::string(subject) + ":" + std::to_string(line), "text in UTF-8", "bytes that are none",
                         "check that it is the right file");
        begin = end + 1;
    }
    return {};
}

// Sees the events of a document and keeps nothing of it.
class NoHandler : public YAML::EventHandler {
    using Mark = YAML::Mark;
    using Text = const std::string&;
    using Anchor = YAML::anchor_t;
    using Style = YAML::EmitterStyle::value;
    void OnDocumentStart(const Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const Mark&, Anchor) override {}
    void OnAlias(const Mark&, Anchor) override {}
    void OnScalar(const Mark&, Text, Anchor, Text) override {}
    void OnSequenceStart(const Mark&, Text, Anchor, Style) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const Mark&, Text, Anchor, Style) override {}
    void OnMapEnd() override {}
};

// YAML::Load ignores what follows the first document, and YAML::LoadAll does not end on a stray comma.
Result<void> check_single(const std::string& text, const std::string& file) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    NoHandler handler;
    if (parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler))
        return usage(file, "one document", "text after its end", "remove lines '---' inside it and stray commas");
    return {};
}

bool indented_by_tab(std::string_view yaml, size_t line) {
    size_t begin = 0;
    while (line-- > 0 && begin != std::string_view::npos) {
        begin = yaml.find('\n', begin);
        if (begin != std::string_view::npos) ++begin;
    }
    if (begin == std::string_view::npos) return false;
    std::string_view rest = yaml.substr(begin);
    return rest.substr(0, rest.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

std::string from_environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// A relative source of a file means the file's folder, not the folder that the server was started in.
void resolve_source(std::string& source, const std::filesystem::path& folder) {
    if (source.starts_with("~/"))
        source = from_environment("HOME") + source.substr(1);
    else if (source.starts_with("./") || source.starts_with("../"))
        source = (folder / source).lexically_normal();
}

}  // namespace

Result<ServeConfig> parse_config(std::string_view yaml, std::string_view subject) {
    ONEBIT_RETURN_IF_ERROR(check_text(yaml, subject));
    std::string file(subject);
    try {
        // the end mark makes the parser notice a quote that was never closed
        std::string text = std::string(yaml) + "\n...\n";
        ONEBIT_RETURN_IF_ERROR(check_single(text, file));
        YAML::Node root = YAML::Load(text);
        ServeConfig config;
        if (root.IsDefined() && !root.IsNull()) read_document(Reader(subject), root, config);
        return config;
    } catch (Fault& fault) {
        return std::move(fault.error);
    } catch (const YAML::DeepRecursion&) {
        return usage(std::move(file), "YAML", "brackets or lists nested hundreds deep");
    } catch (const YAML::Exception& error) {
        std::string remedy = "check the indentation, the quotes and the brackets there";
        if (!error.mark.is_null()) {
            file += ":" + std::to_string(error.mark.line + 1);
            if (indented_by_tab(yaml, size_t(error.mark.line))) remedy = "indent with spaces, not with tabs";
        }
        return usage(std::move(file), "YAML", error.msg, std::move(remedy));
    } catch (const std::exception& error) {
        return usage(std::move(file), "a configuration", error.what());
    }
}

Result<ServeConfig> read_config(const std::filesystem::path& file) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
        return usage(file.string(), "a file", "a folder", "name the onebit.yaml in it");
    std::unique_ptr<FILE, int (*)(FILE*)> stream(std::fopen(file.c_str(), "rbe"), &std::fclose);
    if (!stream) return error_from_errno(errno, file.string(), "check the path given with --config");
    std::string yaml(kLargestFile + 1, '\0');
    yaml.resize(std::fread(yaml.data(), 1, yaml.size(), stream.get()));
    if (std::ferror(stream.get())) return error_from_errno(errno, file.string());

    Result<ServeConfig> config = parse_config(yaml, file.string());
    if (!config) return config;
    config->file = file;
    std::filesystem::path folder = std::filesystem::absolute(file, ignored).parent_path();
    for (auto& [name, model] : config->models) resolve_source(model.source, folder);
    resolve_source(config->model, folder);
    resolve_source(config->default_model, folder);
    for (std::string& source : config->preload) resolve_source(source, folder);
    return config;
}

Result<std::chrono::seconds> parse_duration(std::string_view text) {
    Error error = usage("duration", "a time such as 90s, 5m or 1h30m", shortened(std::string(text)));
    constexpr uint64_t kLongest = 10ull * 366 * 24 * 3600;
    uint64_t total = 0;
    if (text.empty()) return error;
    for (const char *p = text.data(), *end = p + text.size(); p != end;) {
        uint64_t count = 0, unit = 1;
        auto [next, fault] = std::from_chars(p, end, count);
        if (fault != std::errc() || count > kLongest) return error;
        p = next;
        if (p == end) {
            // only "90" may go without a unit; in "1h30" it would be a guess
            if (text.find_first_not_of("0123456789") != std::string_view::npos) return error;
        } else {
            switch (*p++) {
                case 's':
                    unit = 1;
                    break;
                case 'm':
                    unit = 60;
                    break;
                case 'h':
                    unit = 3600;
                    break;
                case 'd':
                    unit = 86400;
                    break;
                default:
                    return error;
            }
        }
        total += count * unit;
        if (total > kLongest) return error;
    }
    return std::chrono::seconds(total);
}

Result<KeepAlive> parse_keep_alive(std::string_view text) {
    if (text == "forever") return KeepAlive(-1);
    Result<std::chrono::seconds> duration = parse_duration(text.starts_with('-') ? text.substr(1) : text);
    if (!duration)
        return usage("keep-alive", "a time such as 90s, 5m or 1h30m, or forever", shortened(std::string(text)));
    if (text.starts_with('-') && duration->count() > 0) return KeepAlive(-1);
    return *duration;
}

Result<uint64_t> parse_size(std::string_view text) {
    Error error = usage("size", "a number of bytes such as 4096, 64K, 256M or 2G", shortened(std::string(text)));
    uint64_t count = 0;
    auto [next, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault != std::errc()) return error;
    std::string_view unit = text.substr(size_t(next - text.data()));
    int shift = 0;
    if (!unit.empty() && unit != "B") {
        switch (unit[0]) {
            case 'k':
            case 'K':
                shift = 10;
                break;
            case 'm':
            case 'M':
                shift = 20;
                break;
            case 'g':
            case 'G':
                shift = 30;
                break;
            case 't':
            case 'T':
                shift = 40;
                break;
            default:
                return error;
        }
        unit.remove_prefix(1);
        if (!unit.empty() && unit != "B" && unit != "iB") return error;
    }
    if (count > (UINT64_MAX >> shift)) return error;
    return count << shift;
}

Result<uint32_t> parse_context(std::string_view text) {
    constexpr uint64_t kLeast = 256;
    uint64_t value = 0;
    auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault == std::errc() && end == text.data() + text.size() && (value == 0 || value >= kLeast) &&
        value <= kMostContext)
        return static_cast<uint32_t>(value);
    return usage("context",
                 "a whole number from " + std::to_string(kLeast) + " to " + std::to_string(kMostContext) +
                     ", or 0 for the model's own",
                 shortened(std::string(text)));
}

Result<std::string> parse_origin(std::string_view text) {
    std::string origin(text);
    for (char& c : origin)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (origin == "*" || origin == "null") return origin;
    const Error error = usage("origin", "https://HOST, http://HOST:PORT or '*'", shortened(std::string(text)),
                              "give it as browsers send it, with its scheme and without a path");
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz", kMark = "://";
    const size_t mark = origin.find(kMark);
    if (mark == std::string::npos || mark == 0 || kLetters.find(origin[0]) == std::string_view::npos ||
        origin.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") != mark)
        return error;
    const std::string scheme = origin.substr(0, mark);
    std::string_view authority = std::string_view(origin).substr(mark + kMark.size());
    size_t host_end = authority.find(':');
    if (authority.starts_with('[')) {
        host_end = authority.find(']');
        if (host_end == std::string_view::npos || host_end == 1 ||
            authority.substr(1, host_end - 1).find_first_not_of("0123456789abcdef:.") != std::string_view::npos)
            return error;
        host_end++;
    } else if (authority.substr(0, host_end).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._~%") !=
               std::string_view::npos) {
        return error;
    }
    host_end = std::min(host_end, authority.size());
    if (host_end == 0) return error;
    std::string_view port = authority.substr(host_end);
    if (!port.empty()) {
        uint32_t number = 0;
        auto [end, fault] = std::from_chars(port.data() + 1, port.data() + port.size(), number);
        if (port[0] != ':' || fault != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535)
            return error;
        // browsers leave it out
        if ((scheme == "http" && number == 80) || (scheme == "https" && number == 443)) port = {};
    }
    return scheme + std::string(kMark) + std::string(authority.substr(0, host_end)) + std::string(port);
}

bool is_usable_api_key(std::string_view key) {
    const auto space = [](char c) { return c == ' ' || c == '\t'; };
    return !key.empty() && !space(key.front()) && !space(key.back()) && printable(key) == key;
}

std::filesystem::path default_config_file() {
    if (std::string folder = from_environment("XDG_CONFIG_HOME"); !folder.empty())
        return std::filesystem::path(folder) / "1bit" / "onebit.yaml";
    if (std::string home = from_environment("HOME"); !home.empty())
        return std::filesystem::path(home) / ".config" / "1bit" / "onebit.yaml";
    return {};
}

}  // namespace onebit
