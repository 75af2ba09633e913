#include "server/catalog/pull_select.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "server/catalog/catalog_names.h"

namespace onebit {
namespace {

constexpr size_t kLongestName = 200;  // ".partial.json" is added, and file systems allow 255 bytes
constexpr size_t kLongestPath = 1024;

std::string upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
    return out;
}

bool is_hub_word(std::string_view text) {
    return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
           text.find("..") == std::string_view::npos && std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return std::isalnum(c) || c == '.' || c == '_' || c == '-';
           });
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string_view folder_of(std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

struct FileSet {
    std::string prefix;  // path without shard number and ".gguf"
    std::string quant;
    unsigned count = 1;
    std::map<unsigned, HubFile> shards;
    std::string first() const { return shards.begin()->second.path; }
};

std::vector<FileSet> sets_of(const HubRepository& repository) {
    std::map<std::pair<std::string, unsigned>, FileSet> sets;
    for (const HubFile& file : repository.files) {
        const std::string name = base_name(file.path);
        if (!has_gguf_extension(name) || names_projector(name) || lower_case(name).find("imatrix") != std::string::npos)
            continue;
        ShardName shard{stem_of(name), 1, 1};
        if (const auto parsed = parse_shard_name(name)) shard = *parsed;
        const std::string prefix = file.path.substr(0, file.path.size() - name.size()) + shard.prefix;
        // a set of one shard is another model than the file without a number
        FileSet& set = sets[{prefix, parse_shard_name(name) ? shard.count : 0}];
        set.prefix = prefix;
        set.quant = quant_of_path(file.path);
        set.count = shard.count;
        set.shards.emplace(shard.number, file);
    }
    std::vector<FileSet> out;
    out.reserve(sets.size());
    for (auto& [key, set] : sets) out.push_back(std::move(set));
    return out;
}

std::string list_of(const std::vector<FileSet>& sets, bool by_quant) {
    std::set<std::string> names;
    for (const FileSet& set : sets) names.insert(by_quant && !set.quant.empty() ? set.quant : set.first());
    std::string text;
    for (const std::string& name : names) {
        if (text.size() > 2000) return text + ", ...";
        text += (text.empty() ? "" : ", ") + name;
    }
    return text.empty() ? "no GGUF file" : text;
}

std::vector<FileSet> sets_with_quant(const std::vector<FileSet>& sets, const std::string& quant) {
    std::vector<FileSet> exact, loose;
    for (const FileSet& set : sets) {
        if (set.quant == upper(quant))
            exact.push_back(set);
        else if (names_quant(set.prefix, quant))
            loose.push_back(set);
    }
    return exact.empty() ? loose : exact;
}

Result<FileSet> choose_set(const std::vector<FileSet>& sets, const PullReference& reference) {
    const std::string& subject = reference.repository;
    if (sets.empty())
        return Error{ErrorCode::not_found, subject, "a repository with GGUF files", "none in it",
                     "look for one whose name ends in -GGUF"};
    if (!reference.file.empty()) {
        for (const FileSet& set : sets)
            for (const auto& [number, file] : set.shards)
                if (file.path == reference.file) return set;
        return Error{ErrorCode::not_found, subject + "/" + reference.file, "one of " + list_of(sets, false),
                     "no such model file", ""};
    }
    std::vector<std::string> wanted{reference.quant};
    if (reference.quant.empty()) wanted = {"Q4_K_M", "Q8_0"};
    for (const std::string& quant : wanted) {
        const std::vector<FileSet> fitting = sets_with_quant(sets, quant);
        if (fitting.size() == 1) return fitting.front();
        if (fitting.size() > 1)
            return Error{ErrorCode::usage, subject + ":" + quant, "one model", "several: " + list_of(fitting, false),
                         "name the file: ORG/REPO/FILE.gguf"};
    }
    if (reference.quant.empty() && sets.size() == 1) return sets.front();
    if (reference.quant.empty())
        return Error{ErrorCode::usage, subject, "a quantization, as it has neither Q4_K_M nor Q8_0", "none",
                     "name one: " + list_of(sets, true)};
    return Error{ErrorCode::not_found, subject + ":" + reference.quant, "one of " + list_of(sets, true),
                 "no such quantization", ""};
}

int projector_rank(const HubFile& file) {
    static const std::vector<std::string> order{"F16", "FP16", "BF16", "F32", "FP32", "Q8_0"};
    const auto found = std::find(order.begin(), order.end(), quantization_in_name(stem_of(base_name(file.path))));
    return static_cast<int>(found - order.begin());
}

std::optional<HubFile> choose_projector(const HubRepository& repository, std::string_view model) {
    std::optional<HubFile> best;
    const auto rank = [&](const HubFile& file) {
        return std::pair(folder_of(file.path) == folder_of(model) ? 0 : 1, projector_rank(file));
    };
    for (const HubFile& file : repository.files) {
        if (!has_gguf_extension(file.path) || !names_projector(base_name(file.path))) continue;
        if (!best || rank(file) < rank(*best)) best = file;
    }
    return best;
}

}  // namespace

Result<PullReference> parse_pull_reference(std::string_view text) {
    const auto wrong = [&](const char* what) {
        return Error{ErrorCode::usage, "model '" + std::string(text.substr(0, 300)) + "'",
                     "ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf", what,
                     "see the hub's page of the model for its name"};
    };
    PullReference reference;
    const size_t first = text.find('/');
    if (first == std::string_view::npos) return wrong("no '/'");
    const size_t second = text.find('/', first + 1);
    std::string_view repo = text.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
    if (second != std::string_view::npos) {
        reference.file = std::string(text.substr(second + 1));
        if (const std::string reason = unsafe_path_reason(reference.file); !reason.empty())
            return wrong(reason.c_str());
        if (!has_gguf_extension(reference.file)) return wrong("a file that is no .gguf");
        if (names_projector(base_name(reference.file))) return wrong("a projector, which comes with its model");
    } else if (const size_t colon = repo.find(':'); colon != std::string_view::npos) {
        reference.quant = std::string(repo.substr(colon + 1));
        repo = repo.substr(0, colon);
        if (!is_hub_word(reference.quant)) return wrong("no quantization after ':'");
    }
    const std::string_view org = text.substr(0, first);
    if (!is_hub_word(org) || !is_hub_word(repo))
        return wrong("a name with other characters than letters, digits, '.', '_' and '-'");
    reference.repository = std::string(org) + "/" + std::string(repo);
    return reference;
}

std::string unsafe_path_reason(std::string_view path) {
    if (path.empty()) return "an empty name";
    if (path.size() > kLongestPath) return "a path of " + std::to_string(path.size()) + " bytes";
    if (path.front() == '/') return "an absolute path";
    for (unsigned char c : path)
        if (c < ' ' || c == 127 || c == '\\') return "a control character or backslash in a path";
    while (true) {
        const size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (part.empty()) return "an empty part in a path";
        if (part.front() == '.') return "a part of a path that begins with '.'";
        if (part.size() > kLongestName) return "a name of " + std::to_string(part.size()) + " bytes";
        if (slash == std::string_view::npos) return {};
        path = path.substr(slash + 1);
    }
}

std::string quant_of_path(std::string_view path) {
    const auto shard = parse_shard_name(base_name(path));
    const std::string quant = quantization_in_name(shard ? shard->prefix : stem_of(base_name(path)));
    return quant.empty() ? quantization_in_name(base_name(folder_of(path))) : quant;
}

bool names_quant(std::string_view path, std::string_view quant) {
    const std::string text = upper(path), wanted = upper(quant);
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
        const size_t end = at + wanted.size();
        const bool begins = at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]));
        const bool stops =
            end == text.size() || (!std::isalnum(static_cast<unsigned char>(text[end])) && text[end] != '_');
        if (begins && stops) return true;
    }
    return false;
}

Result<PullSelection> select_files(const HubRepository& repository, const PullReference& reference) {
    Result<FileSet> set = choose_set(sets_of(repository), reference);
    if (!set) return std::move(set).error();
    PullSelection selection;
    for (unsigned number = 1; number <= set->count; ++number) {
        const auto shard = set->shards.find(number);
        if (shard == set->shards.end())
            return Error{
                ErrorCode::invalid, repository.id + "/" + set->first(), "all " + std::to_string(set->count) + " shards",
                "shard " + std::to_string(number) + " is not in the repository", "choose another quantization"};
        selection.model.push_back(shard->second);
    }
    if (set->shards.size() != set->count)
        return Error{ErrorCode::invalid, repository.id + "/" + set->first(), std::to_string(set->count) + " shards",
                     std::to_string(set->shards.size()), "choose another quantization"};
    selection.projector = choose_projector(repository, set->first());
    for (const HubFile& file : selection.model)
        if (file.size == 0)
            return Error{ErrorCode::invalid, repository.id + "/" + file.path, "a model", "a file of 0 bytes",
                         "choose another quantization"};
    return selection;
}

}  // namespace onebit
