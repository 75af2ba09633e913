// `1bit run`: one answer, or a chat in the terminal.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/chat_session.h"
#include "app/command.h"
#include "app/command_line.h"
#include "app/device_names.h"
#include "app/line_reader.h"
#include "app/model_choice.h"
#include "app/output.h"
#include "app/serve_flags.h"
#include "app/version.h"
#include "base/log.h"

namespace onebit {
namespace {

constexpr size_t kMostInput = 64 << 20;
constexpr int kInterrupted = 130;  // as a shell reports it
constexpr int kSilence = 3000;     // milliseconds that a given prompt waits for the first byte of standard input

struct Options {
    ServeFlags serve;
    std::string first, second, prompt, system;
    bool has_prompt = false, json = false;
    std::optional<double> temperature;
    std::optional<uint64_t> max_tokens, seed;
    std::vector<std::string> words;
};

// Waits until standard input has something to read, or an end. False when the time is over first; interrupts end it
// too.
bool wait_for_input(const Interrupt& interrupt, int milliseconds) {
    pollfd entries[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupt.fd(), POLLIN, 0}};
    int ready = 0;
    do {
        ready = ::poll(entries, 2, milliseconds);
    } while (ready < 0 && errno == EINTR && !interrupt.pending());
    return ready != 0;
}

Result<std::string> read_input(const Interrupt& interrupt) {
    std::string text;
    char piece[65536];
    for (;;) {
        wait_for_input(interrupt, -1);
        if (interrupt.pending()) return Error{ErrorCode::cancelled, "1bit run", "", "interrupted", ""};
        ssize_t got = ::read(STDIN_FILENO, piece, sizeof piece);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EBADF) return text;
        if (got < 0) return error_from_errno(errno, "standard input");
        if (got == 0) return text;
        text.append(piece, size_t(got));
        if (text.size() > kMostInput)
            return Error{ErrorCode::invalid, "standard input", "at most 64 MiB", "more", "give it a part of that"};
    }
}

// Writes the answer as it comes: reasoning only where a person reads along, dimmed.
class AnswerWriter {
public:
    explicit AnswerWriter(bool quiet) : quiet_(quiet), terminal_(output_is_terminal()) {}
    // false when nobody reads any more
    bool write(std::string_view text, bool reasoning) {
        if (quiet_ || (reasoning && !terminal_)) return true;
        if (terminal_ && reasoning != dimmed_) print(reasoning ? "\x1b[2m" : "\x1b[0m\n\n");
        dimmed_ = terminal_ && reasoning;
        print(text);
        begun_ = true;
        if (std::fflush(stdout) != 0) failure_ = errno;
        return failure_ == 0;
    }
    // errno of the write that failed, 0 if none did
    int failure() const { return failure_; }
    void end() {
        if (quiet_ || !begun_ || failure_) return;
        print(dimmed_ ? "\x1b[0m\n" : "\n");
        std::fflush(stdout);
    }

private:
    bool quiet_, terminal_, dimmed_ = false, begun_ = false;
    int failure_ = 0;
};

// A reader that went away has what it wanted; a full disk is an error.
int writing_failed(int failure) {
    std::clearerr(stdout);
    return failure == EPIPE ? 0 : report(error_from_errno(failure, "standard output"));
}

double per_second(uint64_t tokens, double milliseconds) {
    return milliseconds > 0 ? std::round(double(tokens) / milliseconds * 1e6) / 1000 : 0;
}

std::string answer_json(const ChatAnswer& answer, const ChatSession& session) {
    nlohmann::ordered_json json = {
        {"model", printable(session.model())},
        {"devices", session.devices()},
        {"text", answer.text},
        {"finish_reason", answer.finish_reason},
        {"tokens",
         {{"prompt", answer.prompt_tokens}, {"cached", answer.cached_tokens}, {"generated", answer.generated_tokens}}},
        {"timings",
         {{"prompt_ms", answer.prompt_ms},
          {"prompt_per_second",
           per_second(answer.prompt_tokens - std::min(answer.cached_tokens, answer.prompt_tokens), answer.prompt_ms)},
          {"generated_ms", answer.generated_ms},
          {"generated_per_second", per_second(answer.generated_tokens, answer.generated_ms)}}},
    };
    if (!answer.reasoning.empty()) json["reasoning"] = answer.reasoning;
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

ChatRequest request_of(const Options& options) {
    ChatRequest request;
    request.temperature = options.temperature;
    request.max_tokens = options.max_tokens;
    request.seed = options.seed;
    if (!options.system.empty()) request.messages.push_back({"system", options.system});
    return request;
}

int answer_once(ChatSession& session, const Options& options, const std::string& prompt, const Interrupt& interrupt) {
    ChatRequest request = request_of(options);
    request.messages.push_back({"user", prompt});
    AnswerWriter writer(options.json);
    Result<ChatAnswer> answer = session.ask(
        request, [&](std::string_view text, bool reasoning) { return writer.write(text, reasoning); }, interrupt);
    if (!answer) {
        writer.end();
        return report(answer.error());
    }
    if (options.json)
        print(answer_json(*answer, session));
    else
        writer.end();
    if (writer.failure()) return writing_failed(writer.failure());
    if (answer->finish_reason == "cancelled") return kInterrupted;
    if (answer->finish_reason == "length" && !options.max_tokens)
        log_warning("run", "the answer was cut at the end of the context; a larger --ctx-size leaves more room");
    return 0;
}

int chat_in_terminal(ChatSession& session, const Options& options, Interrupt& interrupt) {
    ChatRequest request = request_of(options);
    const size_t kept = request.messages.size();
    LineReader lines(STDIN_FILENO, interrupt);
    std::string devices;
    for (const std::string& name : session.devices()) devices += (devices.empty() ? "" : ", ") + name;
    tell(printable(session.model()) + (devices.empty() ? "" : " on " + devices) +
         "; /clear forgets what was said, /exit or Ctrl-D ends, Ctrl-C stops an answer");
    for (;;) {
        std::fputs("> ", stderr);
        std::optional<std::string> line = lines.next();
        // a line that ends in a backslash goes on
        while (line && line->ends_with('\\')) {
            line->back() = '\n';
            std::fputs(". ", stderr);
            std::optional<std::string> more = lines.next();
            if (!more) break;
            *line += *more;
        }
        if (!line) {
            std::fputs("\n", stderr);
            return interrupt.terminated() ? kInterrupted : 0;
        }
        if (line->find_first_not_of(" \t\n") == std::string::npos) continue;
        if (*line == "/exit" || *line == "/quit" || *line == "/bye") return 0;
        if (*line == "/clear") {
            request.messages.resize(kept);
            continue;
        }
        if (line->starts_with('/') && line->find(' ') == std::string::npos) {
            tell("unknown command " + printable(*line) + "; there are /clear and /exit");
            continue;
        }
        request.messages.push_back({"user", *line});
        AnswerWriter writer(false);
        Result<ChatAnswer> answer = session.ask(
            request, [&](std::string_view text, bool reasoning) { return writer.write(text, reasoning); }, interrupt);
        if (interrupt.terminated()) return kInterrupted;
        interrupt.clear();
        if (!answer) {
            report(answer.error());
            request.messages.pop_back();
            if (answer.error().code == ErrorCode::unavailable) return 1;
            tell("the question was taken back; /clear makes room");
            continue;
        }
        writer.end();
        if (writer.failure()) return writing_failed(writer.failure());
        request.messages.push_back({"assistant", answer->text});
    }
}

Result<ServeConfig> configuration(const Options& options, const std::filesystem::path& program) {
    Result<ServeConfig> config = load_config(options.serve);
    if (!config) return config;
    std::vector<PhysicalDevice> devices;
    auto settle = [&](std::vector<std::string>& names) -> Result<void> {
        if (devices.empty() && !cpu_only(names)) {
            Result<std::vector<PhysicalDevice>> asked = ask_devices(program);
            if (!asked) return asked.error();
            devices = *std::move(asked);
        }
        Result<std::vector<std::string>> ggml = ggml_names(names, devices);
        if (!ggml) return ggml.error();
        names = *std::move(ggml);
        return {};
    };
    const bool open = left_open(config->defaults.devices);
    ONEBIT_RETURN_IF_ERROR(settle(config->defaults.devices));
    if (!config->defaults.prefill_device.empty()) ONEBIT_RETURN_IF_ERROR(settle(config->defaults.prefill_device));
    ONEBIT_RETURN_IF_ERROR(settle_excluded(*config, devices));
    for (auto& [name, model] : config->models) {
        if (!model.devices.empty()) ONEBIT_RETURN_IF_ERROR(settle(model.devices));
        if (!model.prefill_device.empty()) ONEBIT_RETURN_IF_ERROR(settle(model.prefill_device));
    }
    note_devices(*config, open, devices);
    // one person asks: all of the context is for one request
    config->defaults.parallel = 1;
    for (auto& [name, model] : config->models) model.parallel.reset();
    return config;
}

int run_run(Options options) {
    if (!options.first.empty()) options.words.push_back(options.first);
    if (!options.second.empty()) options.words.push_back(options.second);
    options.serve.engine_arguments = arguments_after_dashes();
    CatalogFolders folders = CatalogFolders::of_this_user();

    Result<ServeConfig> plain = load_config(options.serve);
    if (!plain) return report(plain.error());
    RunWords words;
    if (options.has_prompt) {
        if (options.words.size() > 1)
            return report({ErrorCode::usage, "1bit run", "one prompt", "--prompt and '" + options.words[1] + "'", ""});
        words = {options.words.empty() ? "" : options.words[0], options.prompt, true};
    } else {
        words = split_words(options.words, *plain, folders);
    }
    bool chat = !words.has_prompt && input_is_terminal();
    if (chat && options.json)
        return report({ErrorCode::usage, "--json", "a prompt", "none", "give one, or pipe it to standard input"});

    Interrupt interrupt;
    // a reader that goes away must not end this process before its engine and folder are gone
    ::signal(SIGPIPE, SIG_IGN);
    std::string prompt = words.prompt == "-" ? "" : words.prompt;
    bool reads = !chat && (!input_is_terminal() || words.prompt == "-");
    // who starts programs often gives them a pipe that nobody writes to and nobody closes
    if (reads && !prompt.empty() && !wait_for_input(interrupt, kSilence)) {
        log_warning("run", "standard input says nothing; going on with the prompt alone");
        reads = false;
    }
    if (reads) {
        Result<std::string> input = read_input(interrupt);
        if (!input) return input.error().code == ErrorCode::cancelled ? kInterrupted : report(input.error());
        if (input->find_first_not_of(" \t\r\n") != std::string::npos) prompt += (prompt.empty() ? "" : "\n\n") + *input;
    }
    if (!chat && prompt.find_first_not_of(" \t\r\n") == std::string::npos)
        return report({ErrorCode::usage, "1bit run", "a prompt", "none", "see 1bit run --help"});

    // reading a bad prompt is cheaper than loading a model for it
    ChatRequest request = request_of(options);
    request.messages.push_back({"user", prompt});
    if (Result<std::string> body = chat_body(request); !body) return report(body.error());
    std::string model = !words.model.empty()    ? words.model
                        : !plain->model.empty() ? plain->model
                                                : plain->default_model;
    if (Result<void> fetched = fetch_if_missing(model, *plain, folders, interrupt.flag()); !fetched)
        return report(fetched.error());
    Result<ServeConfig> config = configuration(options, program_path());
    if (!config) return report(config.error());
    Result<std::unique_ptr<ChatSession>> session = ChatSession::start(*config, folders, model, interrupt);
    if (!session) return session.error().code == ErrorCode::cancelled ? kInterrupted : report(session.error());
    return chat ? chat_in_terminal(**session, options, interrupt) : answer_once(**session, options, prompt, interrupt);
}

Result<double> parse_temperature(const std::string& text) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) || *end || !std::isfinite(value) ||
        value < 0 || value > 100)
        return Error{ErrorCode::usage, "--temperature", "a number from 0 to 100", "'" + text + "'", ""};
    return value;
}

}  // namespace

void add_run(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("run", "Answer one question, or chat in the terminal.");
    command->add_option("MODEL", options->first, "The model: a path, REPO:QUANT, or a name of 1bit models (builtin)")
        ->type_name("");
    command->add_option("PROMPT", options->second, "The question; - reads it from standard input")->type_name("");
    add_parsed(command, "-p,--prompt", "TEXT", "The question, for one that looks like a flag or a model",
               [options](const std::string& text) -> Result<void> {
                   options->prompt = text;
                   options->has_prompt = true;
                   return {};
               });
    command->add_option("--system", options->system, "Instructions that stand before the question")->type_name("TEXT");
    add_parsed(command, "--temperature", "T", "Sampling temperature, 0 for the likeliest answer",
               [options](const std::string& text) -> Result<void> {
                   Result<double> value = parse_temperature(text);
                   if (!value) return value.error();
                   options->temperature = *value;
                   return {};
               });
    add_number(command, "-n,--max-tokens", "End the answer after so many tokens", &options->max_tokens, 1, 1u << 30);
    add_number(command, "--seed", "Seed of the sampling, for the same answer again", &options->seed, 0, UINT32_MAX);
    add_repeated(command, "--device", "NAME", "Device to run on, a name of 1bit devices, or 'cpu'; never replaced",
                 &options->serve.devices);
    add_tandem_flags(command, &options->serve);
    add_context(command, "Tokens of the prompt and the answer, at least 256; 0 for the model's own", &options->serve);
    command->add_option("--config", options->serve.config_file, "Configuration file (~/.config/1bit/onebit.yaml)")
        ->type_name("FILE");
    command->add_flag("--offline", options->serve.offline, "Never ask a hub");
    command->add_flag("--no-memory-check", options->serve.no_memory_check, "Load even what the plan says cannot fit");
    command->add_flag("--json", options->json, "Print one object: text, tokens, timings, finish reason, devices");
    command->footer(
        "One word is the model if it is a path, REPO:QUANT or the name of a model, and the prompt otherwise.\n"
        "Standard input that is no terminal is read to its end and added to the prompt; beside a prompt it is left\n"
        "out, with a warning, when it is a pipe that says nothing for 3 seconds. Without a prompt on a terminal it is\n"
        "a chat. A prompt that does not fit the context is an error and never cut.\n"
        "Arguments after -- go to the llama.cpp server.\n\n"
        "Examples:\n"
        "  1bit run \"What is the capital of France?\"\n"
        "  1bit run MODEL.gguf \"Name three rivers.\" --temperature 0\n"
        "  1bit run ORG/REPO-GGUF:Q4_K_M                      # chat\n"
        "  cat notes.txt | 1bit run MODEL.gguf \"Summarise this.\" --ctx-size 16384\n"
        "  1bit run \"What is the capital of Italy?\" --json");
    command->callback([options, run] { *run = [options] { return run_run(*options); }; });
}

}  // namespace onebit
