// If this fails, a stored route is lost, is used for another model or device, or a damaged one does harm.
#include "engine/route_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>

#include "engine/route_choice.h"

namespace onebit {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

RouteTable sample() {
    RouteTable table;
    table.members = {"Vulkan0", "CUDA0"};
    table.ubatch = 512;
    table.switch_us = 165.5;
    table.source = "tune";
    table.cells = {{1, 0, {238.25, 270}}, {512, 0, {11214, 9801}}, {1, 2048, {230, 265}}};
    table.trials = {{"Vulkan0", "CUDA0", 2048, 32, 0.3125}};
    return table;
}

class RouteTables : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "routes-XXXXXX";
        folder_ = mkdtemp(name.data());
    }
    void TearDown() override { fs::remove_all(folder_); }
    FileCache open() { return *FileCache::open(folder_ / "routes", 1 << 20); }
    fs::path write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return folder_ / name;
    }
    fs::path folder_;
};

TEST_F(RouteTables, RoundTrip) {
    const auto read = parse_route_table(route_table_to_json(sample()));
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(read->members, sample().members);
    EXPECT_EQ(read->ubatch, 512u);
    EXPECT_EQ(read->switch_us, 165.5);
    EXPECT_EQ(read->source, "tune");
    ASSERT_EQ(read->cells.size(), 3u);
    EXPECT_EQ(read->cells[2].depth, 2048u);
    EXPECT_EQ(read->cells[0].tokens_per_second, (std::vector<double>{238.25, 270}));
    ASSERT_EQ(read->trials.size(), 1u);
    EXPECT_EQ(read->trials[0].seconds, 0.3125);
    EXPECT_EQ(route_table_to_json(*read), route_table_to_json(sample()));

    FileCache tables = open();
    ASSERT_TRUE(store_route_table(tables, "key", sample()).ok());
    const auto loaded = load_route_table(tables, "key", {"CUDA0", "Vulkan0"});
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_EQ(route_table_to_json(*loaded), route_table_to_json(sample()));
    EXPECT_TRUE(load_route_table(tables, "key", {}).ok());
    EXPECT_EQ(load_route_table(tables, "other", {}).error().code, ErrorCode::not_found);
    EXPECT_EQ(load_route_table(tables, "key", {"Vulkan0", "CPU"}).error().code, ErrorCode::not_found);
    // measured again
    RouteTable newer = sample();
    newer.source = "calibration";
    ASSERT_TRUE(store_route_table(tables, "key", newer).ok());
    EXPECT_EQ(load_route_table(tables, "key", {})->source, "calibration");
}

TEST_F(RouteTables, ADamagedFileIsNone) {
    FileCache tables = open();
    ASSERT_TRUE(store_route_table(tables, "key", sample()).ok());
    fs::path file;
    for (const auto& entry : fs::directory_iterator(folder_ / "routes"))
        if (entry.path().extension() == ".entry") file = entry.path();
    const auto size = fs::file_size(file);
    for (const uintmax_t cut : {uintmax_t{0}, uintmax_t{10}, size - 1}) {
        ASSERT_TRUE(store_route_table(tables, "key", sample()).ok());
        fs::resize_file(file, cut);
        EXPECT_EQ(load_route_table(tables, "key", {}).error().code, ErrorCode::not_found) << cut;
    }
    ASSERT_TRUE(store_route_table(tables, "key", sample()).ok());
    {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(size / 2));
        stream << "!!!";
    }
    EXPECT_EQ(load_route_table(tables, "key", {}).error().code, ErrorCode::not_found);
    // sound bytes that are no table
    const std::string other = "{\"version\":1}";
    ASSERT_TRUE(tables.put("key", std::as_bytes(std::span(other))).ok());
    EXPECT_EQ(load_route_table(tables, "key", {}).error().code, ErrorCode::not_found);
}

TEST_F(RouteTables, HostileTextIsRefusedByField) {
    const std::string good = route_table_to_json(sample());
    const auto with = [&](const std::string& what, const std::string& by) {
        std::string text = good;
        const size_t at = text.find(what);
        EXPECT_NE(at, std::string::npos) << what;
        return text.replace(at, what.size(), by);
    };
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "version"},
        {"[]", "version"},
        {"null", "version"},
        {std::string("\0\xff", 2), "version"},
        {std::string(100000, '['), "version"},
        {with("\"version\": 1", "\"version\": 2"), "version"},
        {with("\"Vulkan0\"", "\"CUDA0\""), "members"},
        {with("\"Vulkan0\"", "\"\""), "members"},
        {with("\"Vulkan0\"", "7"), "members"},
        {with("\"Vulkan0\"", "\"" + std::string(1000, 'a') + "\""), "members"},
        {with("\"ubatch\": 512", "\"ubatch\": 0"), "ubatch"},
        {with("\"ubatch\": 512", "\"ubatch\": -1"), "ubatch"},
        {with("\"ubatch\": 512", "\"ubatch\": 99999999999999999999"), "ubatch"},
        {with("\"ubatch\": 512", "\"ubatch\": 256"), "cells.ubatch"},
        {with("165.5", "-1"), "switch_us"},
        {with("165.5", "1e400"), ""},
        {with("\"tune\"", "\"someone\""), "source"},
        {with("238.25", "0"), "tokens_per_second"},
        {with("238.25", "-5"), "tokens_per_second"},
        {with("238.25", "null"), "tokens_per_second"},
        {with("238.25,", ""), "tokens_per_second"},
        {with("\"depth\": 2048", "\"depth\": 0"), "cells"},
        {with("\"depth\": 2048", "\"depth\": -2048"), "cells.depth"},
        {with("\"prompt\": 2048", "\"prompt\": 2047"), "trials.prompt"},
        {with("0.3125", "0"), "trials.seconds"},
        {with("\"decode\": \"CUDA0\"", "\"decode\": \"Vulkan0\""), "trials.prefill"},
        {with("\"decode\": \"CUDA0\"", "\"decode\": {}"), "trials.prefill"},
    };
    for (const auto& [text, field] : cases) {
        const auto read = parse_route_table(text);
        ASSERT_FALSE(read.ok()) << text;
        EXPECT_EQ(read.error().code, ErrorCode::invalid);
        EXPECT_THAT(read.error().message(), HasSubstr(field)) << text;
    }
}

TEST_F(RouteTables, TheKeyIsOfAllThatMattersAndOfNothingElse) {
    RouteKey key;
    key.model_files = {write("a.gguf", "GGUF and more")};
    key.devices = {route_identity("Vulkan0", "H200", "580"), route_identity("CUDA0", "H200", "580")};
    const std::string first = *route_key(key);
    EXPECT_EQ(first.size(), 64u);
    RouteKey same = key;
    std::swap(same.devices[0], same.devices[1]);
    fs::create_directory(folder_ / "moved");
    fs::copy_file(folder_ / "a.gguf", folder_ / "moved" / "b.gguf");
    same.model_files = {folder_ / "moved" / "b.gguf"};
    EXPECT_EQ(*route_key(same), first) << "neither the order of the devices nor the file's name matters";

    std::set<std::string> keys = {first};
    const auto differs = [&](auto change) {
        RouteKey other = key;
        change(other);
        EXPECT_TRUE(keys.insert(*route_key(other)).second);
    };
    differs([](RouteKey& k) { k.ubatch = 1024; });
    differs([](RouteKey& k) { k.cache_type_k = "q8_0"; });
    differs([](RouteKey& k) { k.cache_type_v = "q8_0"; });
    differs([](RouteKey& k) { k.flash_attention = "off"; });
    differs([](RouteKey& k) { k.threads = "4"; });
    differs([](RouteKey& k) { k.devices[0] = route_identity("Vulkan0", "H200", "581"); });
    differs([](RouteKey& k) { k.devices.pop_back(); });
    differs([&](RouteKey& k) { k.model_files = {write("c.gguf", "GGUF and less")}; });
    differs([&](RouteKey& k) { k.model_files.push_back(write("d.gguf", "second shard")); });

    key.model_files = {folder_ / "missing.gguf"};
    EXPECT_EQ(route_key(key).error().code, ErrorCode::not_found);
    key.model_files = {};
    EXPECT_FALSE(route_key(key).ok());
    key.model_files = {write("empty.gguf", "")};
    EXPECT_FALSE(route_key(key).ok());
}

}  // namespace
}  // namespace onebit
