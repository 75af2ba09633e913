// Shell completions and the man page, made from the tree of commands, so that they cannot differ from it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace onebit {

std::string bash_completions(const CLI::App& app);
std::string zsh_completions(const CLI::App& app);
std::string fish_completions(const CLI::App& app);

// roff for man(1), one page for all commands.
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace onebit
