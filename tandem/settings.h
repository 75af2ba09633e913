// What a tandem is made of and how it routes, as one line of text: the value of ONEBIT_TANDEM, for programs that load
// libggml-tandem.so, and what the engine process is given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace onebit::tandem {

// When a node inside a graph cannot run on the member chosen for the graph.
enum class Segments {
    automatic,  // the whole graph goes to a member that can run all of it; pieces only when there is none
    always,     // the node alone goes to another member
    never,      // like automatic, and a graph that no member can run whole is refused
};

// A fault that is caused on purpose, for tests.
struct Fault {
    enum class Kind { none, compute, nan, allocate, map, abort, hang, lost };
    Kind kind = Kind::none;
    std::string member;  // the device it happens on
    uint64_t at = 0;     // at which of its graphs, or allocations, counted from 0
    uint64_t count = 1;  // how often in a row
};

struct Settings {
    std::string owner;        // device names of ggml; "guest:CPU" is the CPU as a guest where it is the owner as well
    std::string prefill;      // the owner when empty
    std::string decode;       // the owner when empty
    int64_t min_tokens = 32;  // graphs of at least so many tokens are prefill
    Segments segments = Segments::automatic;
    bool strict = false;  // a graph that its member cannot run is an error
    bool staged = false;  // inputs go with the graph even where the CPU could write them at once: for tests
    bool repeat = true;   // after a failure the graph is repeated on another member
    // Inputs of so many bytes are written by a transfer of their own, where a copy beside the graph costs more.
    uint64_t upload = uint64_t{256} << 10;
    uint64_t region_limit = 0;      // bytes of one buffer at most; 0: what the members report
    std::vector<std::string> deny;  // "DEVICE/OP": the device is taken not to support the op
    Fault fault;
};

// "owner=Vulkan0,prefill=CUDA0,decode=Vulkan0,min=512,segments=always,strict=1,repeat=0,upload=1M,region=16M,deny=CPU/SWIGLU,
// fault=compute/CPU/3/1". Error usage names the key, what it takes and the keys there are.
Result<Settings> parse_settings(std::string_view text);

// The same in one line that parse_settings() reads.
std::string to_string(const Settings& settings);

}  // namespace onebit::tandem
