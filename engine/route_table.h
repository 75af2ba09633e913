// What was measured of the members of a tandem: tokens per second by size of the ubatch and depth, as `1bit tune` and
// the calibration of an engine write it and the choice of a route reads it; and where it is kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/cache_folder.h"
#include "base/result.h"

namespace onebit {

struct RouteCell {
    uint32_t ubatch = 1;                    // tokens of the graph
    uint32_t depth = 0;                     // tokens in the cache before it
    std::vector<double> tokens_per_second;  // one a member, in the table's order
};

// A prompt that was read on one member after tokens on another, as a check of what the cells promise.
struct RouteTrial {
    std::string prefill, decode;
    uint32_t prompt = 0, generate = 0;  // tokens; the prompt is whole ubatches
    double seconds = 0;
};

struct RouteTable {
    std::vector<std::string> members;  // ggml names; the owner of the memory first
    uint32_t ubatch = 512;             // tokens of the largest ubatch
    double switch_us = 0;              // what a change of the member costs, in microseconds
    std::vector<RouteCell> cells;
    std::vector<RouteTrial> trials;
    std::string source;  // "tune" or "calibration"
};

std::string route_table_to_json(const RouteTable& table);
// Takes any bytes. Error invalid names the first field that is not what it should be: 1 to 8 different members, rates
// above 0, no cell twice, no ubatch larger than the table's.
Result<RouteTable> parse_route_table(std::string_view json);

// What a table depends on: other values are another table.
struct RouteKey {
    std::vector<std::filesystem::path> model_files;
    std::vector<std::string> devices;  // route_identity() of each member, in any order
    uint32_t ubatch = 512;
    std::string cache_type_k = "f16", cache_type_v = "f16", flash_attention = "auto";
    std::string threads;  // as given; empty: llama.cpp's choice
};

// 64 hexadecimal digits. A model is known by the sizes of its files and the begin of the first, which names shapes and
// types; llama.cpp by its pin. Error io or not_found for a file.
Result<std::string> route_key(const RouteKey& key);

// "Vulkan0, NVIDIA H200, NVIDIA 580.159.04": the member, its hardware and its driver.
std::string route_identity(const std::string& device, const std::string& hardware, const std::string& driver);

// The tables of this user, in the folder "routes" of the cache folder. Any thread, any process.
Result<FileCache> open_route_tables();
// Error not_found when there is none, or one that cannot be read, or one of other members. members: in any order;
// empty: not compared.
Result<RouteTable> load_route_table(FileCache& tables, const std::string& key, std::vector<std::string> members);
Result<void> store_route_table(FileCache& tables, const std::string& key, const RouteTable& table);

}  // namespace onebit
