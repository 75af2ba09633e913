// The command line of make-model. Parsed here by hand, so that the tool builds where nothing but a compiler is.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/make-model/model_writer.h"

namespace onebit {

struct MakeModelArguments {
    bool help = false;
    ModelRequest request;
};

// arguments: without the program's name. Error usage for anything else than what usage_text() says.
Result<MakeModelArguments> parse_make_model(std::span<const std::string> arguments);

std::string make_model_usage();

}  // namespace onebit
