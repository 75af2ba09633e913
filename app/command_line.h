// The command line: builds the tree of commands, reads the arguments and runs the chosen command.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/command.h"
#include "base/result.h"

namespace onebit {

class CommandLine {
public:
    explicit CommandLine(std::span<const AddCommand> commands);

    // arguments: without the program's name. Runs the chosen command and returns its exit code; prints help, the
    // version, or an error that names the nearest command or flag (exit code 2). Never throws. Once per object.
    int run(std::vector<std::string> arguments);

    CLI::App& app() { return *app_; }

private:
    int usage_error(const CLI::ParseError& error) const;
    const CLI::App* chosen() const;
    std::string help_of_chosen() const;

    std::unique_ptr<CLI::App> app_;
    CommandRun chosen_run_;
    int verbose_ = 0, quiet_ = 0;
};

// Commands and flags that are shown; the hidden ones have an empty group.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
std::vector<const CLI::Option*> shown_options(const CLI::App& app);      // with a dash
std::vector<const CLI::Option*> shown_positionals(const CLI::App& app);  // without

// Whether it is one of the options that every command has: help, verbose, quiet.
bool is_common(const CLI::Option& option);

// An option whose text is taken by a function, whose error is shown as the option's. type: such as "N", for the help.
// The last one wins when it is given twice.
CLI::Option* add_parsed(CLI::App* app, const std::string& names, const std::string& type, const std::string& help,
                        std::function<Result<void>(const std::string&)> take);

// May be given several times; values are taken as they are, commas and brackets included.
CLI::Option* add_repeated(CLI::App* app, const std::string& names, const std::string& type, const std::string& help,
                          std::vector<std::string>* values);

// What several commands have: the model, the types of the key-value cache, and flash attention ("on", "off", "auto").
void add_model(CLI::App* command, std::string* model);
void add_cache_types(CLI::App* command, std::string* keys, std::string* values);
void add_flash_attention(CLI::App* command, std::string* when);

// A whole number from least to most.
Result<uint64_t> parse_number(const std::string& text, uint64_t least, uint64_t most);

// Such numbers with commas between them, which replace what is in the list.
Result<void> parse_numbers(const std::string& text, uint64_t least, uint64_t most, std::vector<uint32_t>* numbers);

// parse_number() into a number or an optional one.
template <typename T>
CLI::Option* add_number(CLI::App* app, const std::string& names, const std::string& help, T* value, uint64_t least,
                        uint64_t most) {
    return add_parsed(app, names, "N", help, [=](const std::string& text) -> Result<void> {
        Result<uint64_t> number = parse_number(text, least, most);
        if (!number) return number.error();
        if constexpr (requires { value->has_value(); })
            *value = typename T::value_type(*number);
        else
            *value = T(*number);
        return {};
    });
}

}  // namespace onebit
