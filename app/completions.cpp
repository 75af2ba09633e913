#include "app/completions.h"

#include <algorithm>

#include "app/command_line.h"

namespace onebit {
namespace {

std::vector<std::string> names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string type_of(const CLI::Option& option) {
    return option.get_type_name().empty() ? "VALUE" : option.get_type_name();
}

bool takes_file(const CLI::Option& option) { return type_of(option) == "FILE" || option.get_name() == "MODEL"; }

std::string join(const std::vector<std::string>& parts, const std::string& between) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
    return text;
}

// In single quotes for a POSIX shell.
std::string shell_quoted(const std::string& text) {
    std::string result = "'";
    for (char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
    return result + "'";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// What stands in brackets in zsh's _arguments ends at ']' and is split at ':'.
std::string zsh_text(const std::string& text) {
    std::string result;
    for (char c : first_line(text)) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

std::string fish_quoted(const std::string& text) {
    std::string result = "'";
    for (char c : first_line(text)) {
        if (c == '\'' || c == '\\') result += '\\';
        result += c;
    }
    return result + "'";
}

std::vector<std::string> words_of(const CLI::App& command) {
    std::vector<std::string> words;
    for (const CLI::Option* option : shown_options(command))
        for (const std::string& name : names_of(*option)) words.push_back(name);
    return words;
}

std::vector<std::string> value_options(const CLI::App& command, bool files) {
    std::vector<std::string> words;
    for (const CLI::Option* option : shown_options(command)) {
        if (!takes_value(*option) || takes_file(*option) != files) continue;
        for (const std::string& name : names_of(*option)) words.push_back(name);
    }
    return words;
}

const char* const kShells = "bash zsh fish man";

}  // namespace

std::string bash_completions(const CLI::App& app) {
    std::vector<std::string> commands;
    for (const CLI::App* command : shown_commands(app)) commands.push_back(command->get_name());
    std::string text =
        "# completions of 1bit for bash\n"
        "_1bit() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= files= values= "
        "i\n"
        "    COMPREPLY=()\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        case ${COMP_WORDS[i]} in\n"
        "            --) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
        "            -*) ;;\n"
        "            *) [[ -n $command ]] || command=${COMP_WORDS[i]} ;;\n"
        "        esac\n"
        "    done\n"
        "    case $command in\n"
        "        '') COMPREPLY=($(compgen -W " +
        shell_quoted(join(commands, " ") + " " + join(words_of(app), " ")) + " -- \"$word\")); return ;;\n";
    for (const CLI::App* command : shown_commands(app)) {
        text += "        " + command->get_name() +
                ")\n            options=" + shell_quoted(join(words_of(*command), " ")) +
                "\n            files=" + shell_quoted(" " + join(value_options(*command, true), " ") + " ") +
                "\n            values=" + shell_quoted(" " + join(value_options(*command, false), " ") + " ") + " ;;\n";
    }
    text +=
        "        *) return ;;\n"
        "    esac\n"
        "    if [[ $files == *\" $before \"* ]]; then COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "    elif [[ $values == *\" $before \"* ]]; then return\n"
        "    elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
        "    elif [[ $command == completions ]]; then COMPREPLY=($(compgen -W '" +
        std::string(kShells) +
        "' -- \"$word\"))\n"
        "    else COMPREPLY=($(compgen -f -- \"$word\") $(compgen -W builtin -- \"$word\"))\n"
        "    fi\n"
        "}\n"
        "complete -o filenames -F _1bit 1bit\n";
    return text;
}

std::string zsh_completions(const CLI::App& app) {
    auto argument = [](const CLI::Option& option) {
        std::vector<std::string> names = names_of(option);
        std::string spec;
        if (names.size() > 1)
            spec = shell_quoted("(" + join(names, " ") + ")") + "{" + join(names, ",") + "}";
        else
            spec = names.front();
        std::string rest = "[" + zsh_text(option.get_description()) + "]";
        if (takes_value(option)) rest += ":" + zsh_text(type_of(option)) + (takes_file(option) ? ":_files" : ": ");
        return spec + shell_quoted(rest);
    };
    std::string text =
        "#compdef 1bit\n"
        "# completions of 1bit for zsh\n"
        "_1bit() {\n"
        "    local context state state_descr line\n"
        "    typeset -A opt_args\n"
        "    _arguments -C '1:command:->command' '*::argument:->argument'\n"
        "    case $state in\n"
        "        command)\n"
        "            local -a commands=(\n";
    for (const CLI::App* command : shown_commands(app))
        text +=
            "                " + shell_quoted(command->get_name() + ":" + zsh_text(command->get_description())) + "\n";
    text +=
        "            )\n"
        "            _describe command commands ;;\n"
        "        argument)\n"
        "            case $line[1] in\n";
    for (const CLI::App* command : shown_commands(app)) {
        text += "                " + command->get_name() + ") _arguments";
        for (const CLI::Option* option : shown_options(*command))
            text += " \\\n                    " + argument(*option);
        std::string rest =
            command->get_name() == "completions" ? "*:shell:(" + std::string(kShells) + ")" : "*:argument:_files";
        text += " \\\n                    " + shell_quoted(rest) + " ;;\n";
    }
    text +=
        "            esac ;;\n"
        "    esac\n"
        "}\n"
        "if [ \"$funcstack[1]\" = _1bit ]; then _1bit \"$@\"; else compdef _1bit 1bit; fi\n";
    return text;
}

std::string fish_completions(const CLI::App& app) {
    std::string text = "# completions of 1bit for fish\n";
    for (const CLI::App* command : shown_commands(app))
        text += "complete -c 1bit -n __fish_use_subcommand -f -a " + command->get_name() + " -d " +
                fish_quoted(command->get_description()) + "\n";
    auto add = [&](const CLI::App& command, const std::string& condition) {
        for (const CLI::Option* option : shown_options(command)) {
            text += "complete -c 1bit -n " + shell_quoted(condition);
            for (const std::string& name : option->get_snames()) text += " -s " + name;
            for (const std::string& name : option->get_lnames()) text += " -l " + name;
            if (takes_value(*option)) text += takes_file(*option) ? " -r -F" : " -x";
            text += " -d " + fish_quoted(option->get_description()) + "\n";
        }
    };
    add(app, "__fish_use_subcommand");
    for (const CLI::App* command : shown_commands(app))
        add(*command, "__fish_seen_subcommand_from " + command->get_name());
    text += "complete -c 1bit -n '__fish_seen_subcommand_from completions' -f -a '" + std::string(kShells) + "'\n";
    return text;
}

}  // namespace onebit
