// `1bit completions`: completions for a shell, or the man page.
#include "app/completions.h"

#include "app/command.h"
#include "app/output.h"
#include "app/version.h"

namespace onebit {

void add_completions(CLI::App& app, CommandRun* run) {
    CLI::App* command = app.add_subcommand("completions", "Print completions for a shell, or the man page.");
    auto shell = std::make_shared<std::string>();
    command->add_option("SHELL", *shell, "bash, zsh, fish, or man for the man page")
        ->required()
        ->type_name("")
        ->check([](const std::string& text) {
            bool known = text == "bash" || text == "zsh" || text == "fish" || text == "man";
            return known ? "" : "expected bash, zsh, fish or man, found '" + text + "'";
        });
    command->footer(
        "Examples:\n"
        "  1bit completions bash > ~/.local/share/bash-completion/completions/1bit\n"
        "  1bit completions zsh > \"${fpath[1]}/_1bit\"\n"
        "  1bit completions fish > ~/.config/fish/completions/1bit.fish\n"
        "  1bit completions man > ~/.local/share/man/man1/1bit.1");
    command->callback([&app, shell, run] {
        *run = [&app, shell] {
            if (*shell == "bash")
                print(bash_completions(app));
            else if (*shell == "zsh")
                print(zsh_completions(app));
            else if (*shell == "fish")
                print(fish_completions(app));
            else
                print(man_page(app, version_line()));
            return 0;
        };
    });
}

}  // namespace onebit
