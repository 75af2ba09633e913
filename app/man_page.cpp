// The man page: see man(7) for the macros.
#include <sstream>

#include "app/command_line.h"
#include "app/completions.h"

namespace onebit {
namespace {

// Text without meaning to roff. A line's first character must not be a control character either.
std::string escaped(const std::string& text) {
    std::string result;
    bool at_start = true;
    for (char c : text) {
        if (at_start && (c == '.' || c == '\'')) result += "\\&";
        if (c == '\\')
            result += "\\e";
        else if (c == '-')
            result += "\\-";
        else
            result += c;
        at_start = c == '\n';
    }
    return result;
}

void write_options(std::ostream& out, const CLI::App& command) {
    auto write = [&](const CLI::Option& option, bool positional) {
        std::string head;
        if (positional) {
            head = option.get_name();
        } else {
            for (const std::string& name : option.get_snames()) head += (head.empty() ? "-" : ", -") + name;
            for (const std::string& name : option.get_lnames()) head += (head.empty() ? "--" : ", --") + name;
        }
        out << ".TP\n\\fB" << escaped(head) << "\\fR";
        if (!positional && option.get_items_expected_max() > 0)
            out << " \\fI" << escaped(option.get_type_name().empty() ? "VALUE" : option.get_type_name()) << "\\fR";
        out << "\n" << escaped(option.get_description().empty() ? option.get_name() : option.get_description()) << "\n";
    };
    for (const CLI::Option* option : shown_positionals(command)) write(*option, true);
    for (const CLI::Option* option : shown_options(command))
        if (!is_common(*option) || command.get_parent() == nullptr) write(*option, false);
}

// "Examples:" and such become bold, indented lines keep their form.
void write_footer(std::ostream& out, const std::string& footer) {
    std::istringstream lines(footer);
    bool verbatim = false;
    for (std::string line; std::getline(lines, line);) {
        bool indented = line.starts_with(' ');
        if (indented != verbatim) out << (indented ? ".PP\n.nf\n" : ".fi\n");
        verbatim = indented;
        if (line.empty())
            out << ".PP\n";
        else if (line.ends_with(':') && !indented)
            out << ".PP\n.B " << escaped(line) << "\n";
        else
            out << escaped(line) << "\n";
    }
    if (verbatim) out << ".fi\n";
}

std::string synopsis(const CLI::App& command) {
    std::string text = "\\fB" + escaped(command.get_name()) + "\\fR";
    if (!shown_options(command).empty()) text += " [\\fIOPTIONS\\fR]";
    for (const CLI::Option* option : shown_positionals(command)) {
        std::string name = "\\fI" + escaped(option->get_name()) + "\\fR";
        text += option->get_required() ? " " + name : " [" + name + "]";
    }
    return text;
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
    std::ostringstream out;
    out << ".TH 1BIT 1 \"\" \"" << escaped(version) << "\" \"User Commands\"\n"
        << ".SH NAME\n1bit \\- " << escaped(app.get_description()) << "\n"
        << ".SH SYNOPSIS\n\\fB1bit\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
        << ".SH DESCRIPTION\n"
        << "Serves GGUF models over HTTP, answers in the terminal, and shows devices, models and what they need.\n"
        << "A \\fIMODEL\\fR is a path, \\fIREPO:QUANT\\fR of a hub, or a name that \\fB1bit models\\fR shows.\n"
        << ".SH OPTIONS\nThese stand before a command; help, verbose and quiet may stand after it too.\n";
    write_options(out, app);
    out << ".SH COMMANDS\n";
    for (const CLI::App* command : shown_commands(app)) {
        out << ".SS 1bit " << escaped(command->get_name()) << "\n"
            << escaped(command->get_description()) << "\n.PP\n1bit " << synopsis(*command) << "\n";
        write_options(out, *command);
        write_footer(out, command->get_footer());
    }
    out << ".SH EXIT STATUS\n0: done; 1: failure; 2: wrong usage; 3: plan finds that a model does not fit.\n"
        << ".SH ENVIRONMENT\n";
    for (const auto& [name, meaning] : std::vector<std::pair<std::string, std::string>>{
             {"ONEBIT_API_KEY", "key of serve, and of the commands that ask a server"},
             {"ONEBIT_HOST", "address of the server that ps and unload ask"},
             {"ONEBIT_MODELS", "folder of downloaded models; else $XDG_DATA_HOME/1bit/models"},
             {"ONEBIT_CACHE", "cache folder; else $XDG_CACHE_HOME/1bit"},
             {"HF_HUB_CACHE, HF_HOME, OLLAMA_MODELS, LMSTUDIO_HOME", "other folders that models looks into"},
             {"HF_ENDPOINT, HF_TOKEN", "hub that pull asks, and the token for it"}})
        out << ".TP\n.B " << escaped(name) << "\n" << escaped(meaning) << "\n";
    out << ".SH FILES\n.TP\n.I ~/.config/1bit/onebit.yaml\nConfiguration of serve.\n";
    return out.str();
}

}  // namespace onebit
