// The function that one of the program's own stands before: found behind it in the order in which names are searched.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace onebit {

// Function: a pointer type. name: as the linker spells it. Ends the process when there is none, which means that
// llama.cpp was linked into the program and not kept in its shared libraries. Any thread.
template <typename Function>
Function next_function(const char* name) {
    const auto found = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
    if (found == nullptr) {
        std::fprintf(stderr, "E %s: not found behind the program's own; llama.cpp's libraries must be shared ones\n",
                     name);
        std::abort();
    }
    return found;
}

}  // namespace onebit
