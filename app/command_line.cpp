#include "app/command_line.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "app/output.h"
#include "app/version.h"
#include "base/log.h"
#include "base/nearest.h"

namespace onebit {
namespace {

constexpr std::string_view kText = "TEXT";  // type of the options that may be empty

std::vector<std::string> after_dashes;

// An option whose value could not be used; what() is the whole message.
class BadValue : public CLI::ParseError {
public:
    explicit BadValue(onebit::Error error)
        : CLI::ParseError("BadValue", error.message(), CLI::ExitCodes::ValidationError), error(std::move(error)) {}
    onebit::Error error;
};

std::vector<std::string> flag_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : shown_options(app)) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
    return names;
}

// Nothing where a name, a path or a number belongs is most often a variable of a script that is not set. A text may be
// empty.
void refuse_empty_values(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        if (option->get_items_expected_max() == 0 || option->get_type_name() == kText) continue;
        option->check([](const std::string& value) {
            return value.empty() ? std::string("expected a value, found nothing") : std::string();
        });
    }
}

// "--name=" as two words, because the parser would take the next word for its value.
void split_empty_values(const CLI::App& app, std::vector<std::string>& words) {
    for (size_t i = 0; i < words.size(); i++) {
        if (words[i].size() < 4 || !words[i].starts_with("--") || words[i].find('=') != words[i].size() - 1) continue;
        const std::string name = words[i].substr(0, words[i].size() - 1);
        const auto has = [&](const CLI::App* one) {
            const CLI::Option* option = one->get_option_no_throw(name);
            return option && option->get_items_expected_max() > 0;
        };
        const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
        if (!has(&app) && std::none_of(commands.begin(), commands.end(), has)) continue;
        words[i] = name;
        words.insert(words.begin() + static_cast<ptrdiff_t>(i) + 1, "");
    }
}

// "1bit kernels show"
std::string full_name(const CLI::App* command) {
    const CLI::App* above = command->get_parent();
    return above ? full_name(above) + " " + command->get_name() : "1bit";
}

std::string first_word(const std::string& flag) { return flag.substr(0, flag.find('=')); }

bool is_flag(const std::string& text) { return text.size() > 1 && text[0] == '-'; }

// A message of CLI11's as ours: it begins with the option's name where it knows one.
Error from_parser(const CLI::ParseError& error, const std::string& see) {
    std::string text = error.what();
    if (error.get_name() == "ConversionError") text = "a value that cannot be read, " + text;
    return {ErrorCode::usage, text, "", "", see};
}

}  // namespace

const std::vector<std::string>& arguments_after_dashes() { return after_dashes; }

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
    std::vector<const CLI::App*> shown;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!command->get_group().empty()) shown.push_back(command);
    return shown;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
    std::vector<const CLI::Option*> shown;
    for (const CLI::Option* option : app.get_options())
        if (option->nonpositional() && !option->get_group().empty()) shown.push_back(option);
    return shown;
}

std::vector<const CLI::Option*> shown_positionals(const CLI::App& app) {
    std::vector<const CLI::Option*> shown;
    for (const CLI::Option* option : app.get_options())
        if (option->get_positional() && !option->nonpositional() && !option->get_group().empty())
            shown.push_back(option);
    return shown;
}

bool is_common(const CLI::Option& option) {
    return option.check_lname("help") || option.check_lname("verbose") || option.check_lname("quiet");
}

CLI::Option* add_parsed(CLI::App* app, const std::string& names, const std::string& type, const std::string& help,
                        std::function<Result<void>(const std::string&)> take) {
    std::string name = names.substr(names.find("--") == std::string::npos ? 0 : names.find("--"));
    name = name.substr(0, name.find(','));
    CLI::callback_t callback = [name, take = std::move(take)](const CLI::results_t& results) {
        Result<void> taken = take(results.empty() ? "" : results.back());
        if (taken) return true;
        Error error = taken.error();
        error.code = ErrorCode::usage;
        error.subject = name;
        throw BadValue(std::move(error));
    };
    return app->add_option(names, callback, help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_repeated(CLI::App* app, const std::string& names, const std::string& type, const std::string& help,
                          std::vector<std::string>* values) {
    CLI::callback_t callback = [values](const CLI::results_t& results) {
        *values = results;
        return true;
    };
    return app->add_option(names, callback, help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_model(CLI::App* command, std::string* model) {
    command->add_option("MODEL", *model, "a name of 1bit models, REPO:QUANT or a file; the built-in one if not given")
        ->type_name("");
}

void add_cache_types(CLI::App* command, std::string* keys, std::string* values) {
    command->add_option("--cache-type-k", *keys, "type of the cached keys, such as f16 or q8_0")->type_name("TYPE");
    command->add_option("--cache-type-v", *values, "type of the cached values")->type_name("TYPE");
}

void add_flash_attention(CLI::App* command, std::string* when) {
    add_parsed(command, "--flash-attn", "WHEN", "on, off or auto", [when](const std::string& text) -> Result<void> {
        if (text != "on" && text != "off" && text != "auto")
            return Error{ErrorCode::usage, "value", "on, off or auto", "'" + text + "'", ""};
        *when = text;
        return {};
    });
}

Result<uint64_t> parse_number(const std::string& text, uint64_t least, uint64_t most) {
    uint64_t value = 0;
    auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
    return Error{ErrorCode::usage, "number",
                 "a whole number from " + std::to_string(least) + " to " + std::to_string(most), "'" + text + "'", ""};
}

Result<void> parse_numbers(const std::string& text, uint64_t least, uint64_t most, std::vector<uint32_t>* numbers) {
    numbers->clear();
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find(',', start), text.size());
        auto number = parse_number(text.substr(start, end - start), least, most);
        if (!number.ok()) return std::move(number).error();
        numbers->push_back(static_cast<uint32_t>(*number));
        start = end + 1;
    }
    return {};
}

CommandLine::CommandLine(std::span<const AddCommand> commands)
    : app_(std::make_unique<CLI::App>("Serves GGUF language models on the GPU in front of you.", "1bit")) {
    app_->require_subcommand(0, 1);
    app_->set_version_flag(
        "--version", [] { return version_line(); }, "Print the version and exit");
    app_->get_formatter()->column_width(34);
    app_->get_formatter()->label("SUBCOMMAND", "COMMAND");
    for (AddCommand add : commands) add(*app_, &chosen_run_);
    for (CLI::App* one : app_->get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*one);

    // counted over the program and the command: 1bit -v serve -v
    auto add_counter = [](CLI::App* to, const char* both, const char* longer, const char* shorter, int* count,
                          const char* help) {
        bool taken = to->get_option_no_throw(shorter) != nullptr;
        to->add_flag_function(
            taken ? longer : both, [count](int64_t times) { *count += int(times); }, help);
    };
    std::vector<CLI::App*> all = app_->get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
    for (CLI::App* one : all) one->group("Commands");
    all.push_back(app_.get());
    for (CLI::App* one : all) {
        add_counter(one, "-v,--verbose", "--verbose", "-v", &verbose_, "Log more; twice for still more");
        add_counter(one, "-q,--quiet", "--quiet", "-q", &quiet_, "Log warnings and errors only; twice: errors only");
        one->get_help_ptr()->description("Print this help and exit");
    }
    app_->footer(
        "Examples:\n"
        "  1bit serve                          # the built-in model on 127.0.0.1:8080\n"
        "  1bit serve MODEL.gguf --device cpu  # this model, on the CPU\n"
        "  1bit run \"What is the capital of France?\"\n"
        "  1bit serve --help                   # flags and examples of a command\n\n"
        "Exit codes: 0, 1 failure, 2 wrong usage, 3 where plan finds that a model does not fit.");
}

const CLI::App* CommandLine::chosen() const {
    const CLI::App* command = app_.get();
    for (std::vector<CLI::App*> parsed; !(parsed = command->get_subcommands()).empty();) command = parsed.front();
    return command;
}

// With the program's name before the command's, in the usage line of each.
std::string CommandLine::help_of_chosen() const {
    const CLI::App* above = chosen()->get_parent();
    return chosen()->help(above ? full_name(above) : "", CLI::AppFormatMode::Normal);
}

int CommandLine::usage_error(const CLI::ParseError& error) const {
    const CLI::App* command = chosen();
    std::string full = full_name(command);
    std::string see = "see " + full + " --help";

    std::vector<std::string> extras = app_->remaining(true);
    auto flag = std::find_if(extras.begin(), extras.end(), is_flag);
    if (flag != extras.end()) {
        std::string near = nearest_name(first_word(*flag), flag_names(*command));
        return report({ErrorCode::usage, first_word(*flag), "an option of " + full, "none of that name",
                       near.empty() ? see : "did you mean " + near + "? " + see});
    }
    if (auto* bad = dynamic_cast<const BadValue*>(&error)) {
        Error shown = bad->error;
        shown.remedy += (shown.remedy.empty() ? "" : "; ") + see;
        return report(shown);
    }
    const std::vector<const CLI::App*> below = shown_commands(*command);
    if (!extras.empty() && !below.empty()) {
        std::vector<std::string> names;
        for (const CLI::App* sub : below) names.push_back(sub->get_name());
        std::string near = nearest_name(extras.front(), names);
        return report({ErrorCode::usage, "'" + extras.front() + "'",
                       command == app_.get() ? "a command" : "a command of " + full, "none of that name",
                       near.empty() ? see : "did you mean '" + near + "'? " + see});
    }
    if (!extras.empty())
        return report({ErrorCode::usage, full, "no further argument", "'" + extras.front() + "'",
                       "put quotes around a text of several words; " + see});
    return report(from_parser(error, see));
}

int CommandLine::run(std::vector<std::string> arguments) try {
    auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    after_dashes.clear();
    if (dashes != arguments.end()) {
        after_dashes.assign(dashes + 1, arguments.end());
        arguments.erase(dashes, arguments.end());
    }
    if (arguments.size() == 2 && arguments[0] == "help") arguments = {arguments[1], "--help"};
    if (arguments.size() == 1 && arguments[0] == "help") arguments = {"--help"};
    split_empty_values(*app_, arguments);
    try {
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
        app_->parse(std::move(reversed));
    } catch (const CLI::CallForHelp& asked) {
        if (chosen() == app_.get() && !app_->remaining(true).empty()) return usage_error(asked);
        print(help_of_chosen());
        return close_output();
    } catch (const CLI::CallForVersion& version) {
        print(std::string(version.what()) + "\n");
        return close_output();
    } catch (const CLI::ParseError& error) {
        return usage_error(error);
    }
    static constexpr LogLevel kLevels[] = {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::verbose,
                                           LogLevel::debug};
    set_log_level(kLevels[std::clamp(2 + verbose_ - quiet_, 0, 4)]);
    if (!chosen_run_) {
        std::string help = app_->help();
        std::fwrite(help.data(), 1, help.size(), stderr);
        return 2;
    }
    int code = chosen_run_();
    int written = close_output();
    return code != 0 ? code : written;
} catch (const std::exception& error) {
    return report({ErrorCode::internal, "1bit", "", error.what(), ""});
}

}  // namespace onebit
