// Measures choices of devices in turns in one process: A B C A B C …, each with the model loaded, and compares what
// they compute. One line of JSON a measurement, for summary.py.
//
// tandem-turns --model FILE --choice NAME=DEVICE|SETTINGS... [--request PROMPT+ANSWER]... [--pairs N] [--seconds N]
//              [--ubatch N] [--context N] [--backends FOLDER] [--load LIBRARY]... [--threads N] [--out FILE] [--log
//              FILE]
// SETTINGS are those of tandem/settings.h, such as owner=Vulkan0,prefill=Vulkan0,decode=CUDA0,min=512.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"
#include "tandem/counters.h"
#include "tandem/device.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

[[noreturn]] void fail(const std::string& text) {
    std::cerr << "tandem-turns: " << text << "\n";
    std::exit(1);
}

struct Request {
    int prompt = 0, answer = 0;
};

struct Options {
    std::string model, backends, out, log;
    std::vector<std::string> loads;
    std::vector<std::pair<std::string, std::string>> choices;
    std::vector<Request> requests;
    int pairs = 10, ubatch = 512, context = 0, threads = 8, compare = 64;
    double seconds = 1e9;
};

struct Choice {
    std::string name;
    llama_model* model = nullptr;
    llama_context* context = nullptr;
    double load_us = 0;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string flag = argv[i];
        if (i + 1 == argc) fail(flag + " needs a value");
        const std::string value = argv[i + 1];
        if (flag == "--model")
            options.model = value;
        else if (flag == "--backends")
            options.backends = value;
        else if (flag == "--load")
            options.loads.push_back(value);
        else if (flag == "--log")
            options.log = value;
        else if (flag == "--out")
            options.out = value;
        else if (flag == "--pairs")
            options.pairs = std::stoi(value);
        else if (flag == "--ubatch")
            options.ubatch = std::stoi(value);
        else if (flag == "--context")
            options.context = std::stoi(value);
        else if (flag == "--threads")
            options.threads = std::stoi(value);
        else if (flag == "--compare")
            options.compare = std::stoi(value);
        else if (flag == "--seconds")
            options.seconds = std::stod(value);
        else if (flag == "--request") {
            const size_t plus = value.find('+');
            if (plus == std::string::npos) fail("--request takes PROMPT+ANSWER");
            options.requests.push_back({std::stoi(value.substr(0, plus)), std::stoi(value.substr(plus + 1))});
        } else if (flag == "--choice") {
            const size_t equals = value.find('=');
            if (equals == std::string::npos) fail("--choice takes NAME=DEVICE or NAME=SETTINGS");
            options.choices.emplace_back(value.substr(0, equals), value.substr(equals + 1));
        } else
            fail("unknown flag " + flag);
    }
    if (options.model.empty() || options.choices.empty() || options.requests.empty())
        fail("--model, --choice and --request are needed; see the head of turns.cpp");
    return options;
}

std::vector<llama_token> tokens(const llama_vocab* vocabulary, int count, uint32_t seed) {
    const auto size = static_cast<uint32_t>(llama_vocab_n_tokens(vocabulary));
    std::vector<llama_token> list(static_cast<size_t>(count));
    for (auto& token : list) {
        seed = seed * 1664525u + 1013904223u;
        token = static_cast<llama_token>((seed >> 8) % size);
    }
    return list;
}

bool is_tandem(const std::string& spec) { return spec.find('=') != std::string::npos; }

ggml_backend_dev_t device_of(const std::string& spec) {
    if (is_tandem(spec)) {
        auto settings = onebit::tandem::parse_settings(spec);
        if (!settings) fail(settings.error().message());
        auto made = onebit::tandem::register_tandem(*settings);
        if (!made) fail(made.error().message());
        return *made;
    }
    ggml_backend_dev_t device = ggml_backend_dev_by_name(spec.c_str());
    if (device == nullptr) fail("no device " + spec);
    return device;
}

Choice load(const Options& options, const std::string& name, ggml_backend_dev_t device, double made_us) {
    Choice choice;
    choice.name = name;
    const auto start = Clock::now();
    ggml_backend_dev_t devices[] = {device, nullptr};
    llama_model_params model = llama_model_default_params();
    model.devices = devices;
    model.n_gpu_layers = 999;
    model.split_mode = LLAMA_SPLIT_MODE_NONE;
    choice.model = llama_model_load_from_file(options.model.c_str(), model);
    if (choice.model == nullptr) fail("cannot load the model on " + name);
    int longest = 0;
    for (const Request& request : options.requests) longest = std::max(longest, request.prompt + request.answer);
    llama_context_params context = llama_context_default_params();
    context.n_ctx = static_cast<uint32_t>(options.context > 0 ? options.context : longest + options.compare + 8);
    context.n_batch = std::max<uint32_t>(2048, static_cast<uint32_t>(options.ubatch));
    context.n_ubatch = static_cast<uint32_t>(options.ubatch);
    context.n_threads = context.n_threads_batch = options.threads;
    context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    choice.context = llama_init_from_model(choice.model, context);
    if (choice.context == nullptr) fail("cannot make a context on " + name);
    choice.load_us = microseconds_since(start) + made_us;
    return choice;
}

void decode(Choice& choice, llama_token* list, int count) {
    llama_batch batch = llama_batch_get_one(list, count);
    if (llama_decode(choice.context, batch) != 0) fail("decode failed on " + choice.name);
}

struct Times {
    double prefill_us = 0, decode_us = 0;
};

Times measure(Choice& choice, const Request& request, std::vector<llama_token> list) {
    llama_memory_clear(llama_get_memory(choice.context), false);
    Times times;
    const int batch = static_cast<int>(llama_n_batch(choice.context));
    auto start = Clock::now();
    for (int done = 0; done < request.prompt; done += batch)
        decode(choice, list.data() + done, std::min(batch, request.prompt - done));
    llama_synchronize(choice.context);
    times.prefill_us = microseconds_since(start);
    start = Clock::now();
    for (int i = 0; i < request.answer; ++i) {
        decode(choice, list.data() + request.prompt + i, 1);
        llama_synchronize(choice.context);
    }
    times.decode_us = microseconds_since(start);
    return times;
}

// Logits after each of the last tokens of a forced text: one row a token.
std::vector<std::vector<float>> forced(Choice& choice, int prompt, int count, std::vector<llama_token> list) {
    llama_memory_clear(llama_get_memory(choice.context), true);
    const int batch = static_cast<int>(llama_n_batch(choice.context));
    for (int done = 0; done < prompt; done += batch) decode(choice, list.data() + done, std::min(batch, prompt - done));
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(choice.model));
    std::vector<std::vector<float>> rows;
    for (int i = 0; i <= count; ++i) {
        const float* logits = llama_get_logits_ith(choice.context, -1);
        rows.emplace_back(logits, logits + vocabulary);
        if (i < count) decode(choice, list.data() + prompt + i, 1);
    }
    return rows;
}

struct Difference {
    double mean_kl = 0, max_kl = 0, deviation = 0;
    int same_top = 0, rows = 0, ties = 0;
};

Difference compare(const std::vector<std::vector<float>>& reference, const std::vector<std::vector<float>>& other) {
    Difference difference;
    for (size_t r = 0; r < reference.size(); ++r) {
        const auto& p = reference[r];
        const auto& q = other[r];
        const auto log_sum = [](const std::vector<float>& row) {
            const double most = *std::max_element(row.begin(), row.end());
            double sum = 0;
            for (const float value : row) sum += std::exp(value - most);
            return most + std::log(sum);
        };
        const double lp = log_sum(p), lq = log_sum(q);
        double kl = 0, mean = 0, square = 0;
        for (size_t i = 0; i < p.size(); ++i) {
            kl += std::exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
            mean += p[i];
            square += static_cast<double>(p[i]) * p[i];
        }
        mean /= static_cast<double>(p.size());
        difference.deviation += std::sqrt(square / static_cast<double>(p.size()) - mean * mean);
        difference.mean_kl += kl;
        difference.max_kl = std::max(difference.max_kl, kl);
        const auto top = std::max_element(p.begin(), p.end()) - p.begin();
        const auto top_other = std::max_element(q.begin(), q.end()) - q.begin();
        const bool tie = p[static_cast<size_t>(top)] - p[static_cast<size_t>(top_other)] < 0.01f;
        difference.same_top += top == top_other || tie;
        difference.ties += top != top_other && tie;
        ++difference.rows;
    }
    difference.mean_kl /= difference.rows;
    difference.deviation /= difference.rows;
    return difference;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    std::ofstream file;
    if (!options.out.empty()) file.open(options.out, std::ios::app);
    const auto put = [&](const std::string& line) {
        std::cout << line << std::endl;
        if (file) file << line << std::endl;
    };
    std::FILE* all = options.log.empty() ? nullptr : std::fopen(options.log.c_str(), "w");
    llama_log_set(
        [](ggml_log_level level, const char* text, void* all) {
            if (level >= GGML_LOG_LEVEL_WARN) std::fputs(text, stderr);
            if (all != nullptr) std::fputs(text, static_cast<std::FILE*>(all));
        },
        all);
    if (options.backends.empty())
        ggml_backend_load_all();
    else
        ggml_backend_load_all_from_path(options.backends.c_str());
    for (const auto& library : options.loads)
        if (ggml_backend_load(library.c_str()) == nullptr) fail("cannot load " + library);

    std::vector<Choice> choices;
    // tandems come first: sharing has to be switched on before a Vulkan device is used
    std::map<std::string, std::pair<ggml_backend_dev_t, double>> devices;
    for (const bool tandems : {true, false})
        for (const auto& [name, spec] : options.choices) {
            if (is_tandem(spec) != tandems) continue;
            const auto start = Clock::now();
            ggml_backend_dev_t device = device_of(spec);
            devices[name] = {device, microseconds_since(start)};
        }
    for (const auto& [name, spec] : options.choices) {
        choices.push_back(load(options, name, devices[name].first, devices[name].second));
        std::ostringstream line;
        line << R"({"kind":"load","choice":")" << name << R"(","spec":")" << spec << R"(","us":)"
             << choices.back().load_us << "}";
        put(line.str());
    }

    const llama_vocab* vocabulary = llama_model_get_vocab(choices[0].model);
    // correctness first: it also warms up every pipeline
    for (const Request& request : options.requests) {
        const auto list = tokens(vocabulary, request.prompt + options.compare, 1);
        std::vector<std::vector<float>> reference;
        for (Choice& choice : choices) {
            auto rows = forced(choice, request.prompt, options.compare, list);
            if (reference.empty()) reference = rows;
            const Difference difference = compare(reference, rows);
            std::ostringstream line;
            line << R"({"kind":"compare","choice":")" << choice.name << R"(","reference":")" << choices[0].name
                 << R"(","prompt":)" << request.prompt << R"(,"rows":)" << difference.rows << R"(,"mean_kl":)"
                 << difference.mean_kl << R"(,"max_kl":)" << difference.max_kl << R"(,"same_top":)"
                 << difference.same_top << R"(,"ties":)" << difference.ties << R"(,"logit_deviation":)"
                 << difference.deviation << "}";
            put(line.str());
        }
    }

    const auto begin = Clock::now();
    for (int pair = -1; pair < options.pairs; ++pair) {
        for (const Request& request : options.requests) {
            const auto list = tokens(vocabulary, request.prompt + request.answer, static_cast<uint32_t>(pair) + 7);
            for (size_t i = 0; i < choices.size(); ++i) {
                // every second turn runs backwards, so that drift does not favour a place in the order
                Choice& choice = choices[pair % 2 == 0 ? i : choices.size() - 1 - i];
                if (all != nullptr) std::fprintf(all, "turn of %s\n", choice.name.c_str());
                const Times times = measure(choice, request, list);
                if (pair < 0) continue;
                std::ostringstream line;
                line << R"({"kind":"turn","pair":)" << pair << R"(,"choice":")" << choice.name << R"(","prompt":)"
                     << request.prompt << R"(,"answer":)" << request.answer << R"(,"prefill_us":)" << times.prefill_us
                     << R"(,"decode_us":)" << times.decode_us << "}";
                put(line.str());
            }
        }
        if (microseconds_since(begin) / 1e6 > options.seconds) break;
    }

    for (const auto& counts : onebit::tandem::tandem_counts()) {
        std::ostringstream line;
        line << R"({"kind":"counts","tandem":")" << counts.tandem << R"(","handoffs":)" << counts.handoffs
             << R"(,"handoff_us":)" << counts.handoff_us << R"(,"staged":)" << counts.staged_writes << R"(,"direct":)"
             << counts.direct_writes << R"(,"staged_bytes":)" << counts.staged_bytes << R"(,"plan_us":)"
             << counts.plan_us << R"(,"input_us":)" << counts.input_us << R"(,"submit_us":)" << counts.submit_us
             << R"(,"wait_us":)" << counts.wait_us << R"(,"arranged":)" << counts.arranged << R"(,"prepared":)"
             << counts.prepared << R"(,"shadow_builds":)" << counts.shadow_builds << R"(,"shadow_hits":)"
             << counts.shadow_hits << R"(,"shared_bytes":)" << counts.shared_bytes << R"(,"repeats":)" << counts.repeats
             << R"(,"members":[)";
        for (const auto& member : counts.members)
            line << (&member == &counts.members.front() ? "" : ",") << R"({"member":")" << member.member
                 << R"(","prefill":)" << member.prefill_tokens << R"(,"decode":)" << member.decode_tokens
                 << R"(,"graphs":)" << member.graphs << "}";
        line << "]}";
        put(line.str());
    }
    for (Choice& choice : choices) {
        llama_free(choice.context);
        llama_model_free(choice.model);
    }
    return 0;
}
