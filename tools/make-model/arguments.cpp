#include "tools/make-model/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>

#include "base/nearest.h"

namespace onebit {
namespace {

constexpr uint32_t most_layers = 512;  // llama.cpp's own limit
constexpr unsigned most_threads = 256;

const std::vector<std::string>& option_names() {
    static const std::vector<std::string> names = {"--seed", "--logit-std", "--layers", "--threads", "--help"};
    return names;
}

Error unknown(const std::string& what, const std::string& found, const std::vector<std::string>& known) {
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    const std::string nearest = nearest_name(found, known);
    return {ErrorCode::usage, what, "one of " + list, "'" + found + "'",
            nearest.empty() ? "" : "did you mean " + nearest + "?"};
}

template <typename T>
Result<T> parse(const std::string& name, const std::string& text, T least, T most) {
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool right = problem == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
    if (right) return value;
    std::string expected = "a number from " + std::to_string(least) + " to " + std::to_string(most);
    return Error{ErrorCode::usage, name, expected, "'" + text + "'", ""};
}

Result<void> set_option(const std::string& name, const std::string& value, ModelRequest* request, uint32_t* layers) {
    if (name == "--seed") {
        auto seed = parse<uint64_t>(name, value, 0, UINT64_MAX);
        if (!seed.ok()) return std::move(seed).error();
        request->seed = *seed;
    } else if (name == "--logit-std") {
        auto deviation = parse<double>(name, value, 0.01, 100);
        if (!deviation.ok()) return std::move(deviation).error();
        request->logit_deviation = *deviation;
    } else if (name == "--layers") {
        auto count = parse<uint32_t>(name, value, 1, most_layers);
        if (!count.ok()) return std::move(count).error();
        *layers = *count;
    } else {
        auto count = parse<unsigned>(name, value, 1, most_threads);
        if (!count.ok()) return std::move(count).error();
        request->threads = *count;
    }
    return {};
}

Result<void> set_words(const std::vector<std::string>& words, ModelRequest* request) {
    if (words.size() != 3) {
        return Error{ErrorCode::usage, "make-model", "SHAPE TYPE FILE",
                     std::to_string(words.size()) + (words.size() == 1 ? " word" : " words"), "see make-model --help"};
    }
    const ModelShape* shape = find_shape(words[0]);
    if (shape == nullptr) {
        std::vector<std::string> names;
        for (const ModelShape& known : model_shapes()) names.push_back(known.name);
        return unknown("shape", words[0], names);
    }
    const FileType* type = find_file_type(words[1]);
    if (type == nullptr) {
        std::vector<std::string> names;
        for (const FileType& known : file_types()) names.push_back(known.name);
        return unknown("type", words[1], names);
    }
    if (words[2].empty()) return Error{ErrorCode::usage, "FILE", "a path", "nothing", ""};
    request->shape = *shape;
    request->type = *type;
    request->file = words[2];
    return {};
}

}  // namespace

Result<MakeModelArguments> parse_make_model(std::span<const std::string> arguments) {
    MakeModelArguments parsed;
    parsed.request.threads = std::clamp(std::thread::hardware_concurrency(), 1u, most_threads);
    std::vector<std::string> words;
    uint32_t layers = 0;
    for (size_t i = 0; i < arguments.size(); i++) {
        const std::string& argument = arguments[i];
        if (argument.size() < 2 || argument[0] != '-') {
            words.push_back(argument);
            continue;
        }
        if (argument == "-h" || argument == "--help") {
            parsed.help = true;
            return parsed;
        }
        const size_t equals = argument.find('=');
        const std::string name = argument.substr(0, equals);
        if (std::ranges::find(option_names(), name) == option_names().end()) {
            return unknown("option", name, option_names());
        }
        if (equals == std::string::npos && i + 1 == arguments.size()) {
            return Error{ErrorCode::usage, name, "a value", "nothing", "see make-model --help"};
        }
        const std::string value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
        ONEBIT_RETURN_IF_ERROR(set_option(name, value, &parsed.request, &layers));
    }
    ONEBIT_RETURN_IF_ERROR(set_words(words, &parsed.request));
    if (layers != 0) parsed.request.shape.layers = layers;
    return parsed;
}

std::string make_model_usage() {
    std::string text =
        "usage: make-model SHAPE TYPE FILE [--layers N] [--seed N] [--logit-std X] [--threads N]\n"
        "Writes a GGUF model of random weights in a real model's shape, for measuring and testing.\n"
        "\n"
        "  --layers N     so many layers instead of the shape's\n"
        "  --seed N       other weights (1); the same seed gives the same file on any number of threads\n"
        "  --logit-std X  standard deviation of the logits (6)\n"
        "  --threads N    as many as the machine has if not given\n"
        "\n"
        "Weights are quantised from a pool of random blocks of which each row takes others: right for speed and for\n"
        "comparing devices, with no meaning. Any text can be encoded, into tokens that are short words of letters.\n"
        "\n"
        "shapes:";
    for (const ModelShape& shape : model_shapes()) text += " " + shape.name;
    text += "\ntypes:";
    for (const FileType& type : file_types()) text += " " + type.name;
    return text +
           "\n\nExamples:\n  make-model qwen3-8b Q4_K_M qwen3-8b.gguf\n  make-model tiny F16 tiny.gguf --layers 2\n";
}

}  // namespace onebit
