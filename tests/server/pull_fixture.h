// What the tests of downloads share: folders of their own, small valid models, a patient-less timing.
#pragma once

#include <gtest/gtest.h>
#include <atomic>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "server/catalog/pull.h"
#include "tests/server/faulty_hub.h"

namespace onebit::test {

namespace fs = std::filesystem;

// A valid GGUF file (version 3) with one F32 tensor of `floats` values made from seed; shards carry their numbers.
inline std::string small_model(uint32_t floats, char seed = 'x', uint16_t shard = 0, uint16_t shards = 1,
                               const std::string& architecture = "llama") {
    std::string bytes;
    const auto number = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
    const auto text = [&](const std::string& value) {
        number(uint64_t{value.size()});
        bytes += value;
    };
    bytes += "GGUF";
    number(uint32_t{3});
    number(uint64_t{1});                     // tensors
    number(uint64_t{shards > 1 ? 6u : 3u});  // metadata
    const auto string_value = [&](const char* key, const std::string& value) {
        text(key);
        number(uint32_t{8});
        text(value);
    };
    const auto integer = [&](const std::string& key, uint32_t type, auto value) {
        text(key);
        number(type);
        number(value);
    };
    string_value("general.architecture", architecture);
    string_value("general.name", std::string("test model ") + seed);
    integer(architecture + ".context_length", 4, uint32_t{512});
    if (shards > 1) {
        integer("split.no", 2, shard);
        integer("split.count", 2, shards);
        integer("split.tensors.count", 5, int32_t{shards});
    }
    text("blk." + std::to_string(shard) + ".weight");
    number(uint32_t{1});
    number(uint64_t{floats});
    number(uint32_t{0});
    number(uint64_t{0});
    bytes.resize((bytes.size() + 31) / 32 * 32, '\0');
    for (uint32_t i = 0; i < floats; ++i) number(static_cast<float>(seed) + static_cast<float>(i % 251));
    return bytes;
}

inline std::string read_file(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_file(const fs::path& path, std::string_view bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class PullTest : public ::testing::Test {
protected:
    void SetUp() override {
        ::unsetenv("HF_TOKEN");
        std::string pattern = (fs::temp_directory_path() / "pull-test-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        root = fs::canonical(pattern);
        folders.ours = root / "models";
        options.hub = hub.url();
        options.timing = {.attempts = 3,
                          .first_delay = std::chrono::milliseconds(1),
                          .longest_delay = std::chrono::milliseconds(5),
                          .connect_timeout = std::chrono::seconds(20),
                          .read_timeout = std::chrono::seconds(60)};
    }
    void TearDown() override {
        hub.stop();
        std::error_code ignored;
        fs::remove_all(root, ignored);
    }

    Result<ModelEntry> pull(const std::string& reference = "org/repo:Q4_K_M") {
        return pull_model(reference, folders, options);
    }

    fs::path target(const std::string& path = kFile) const { return folders.ours / "org/repo" / path; }
    fs::path partial(const std::string& path = kFile) const { return target(path).string() + ".partial"; }

    // Everything below the models folder, folders too, but for the record of what was pulled.
    std::vector<std::string> left() const {
        std::vector<std::string> names;
        if (fs::exists(folders.ours))
            for (const auto& entry : fs::recursive_directory_iterator(folders.ours))
                if (entry.path().filename() != ".pull.json")
                    names.push_back(entry.path().lexically_relative(folders.ours).string());
        std::sort(names.begin(), names.end());
        return names;
    }
    static std::vector<std::string> whole() { return {"org", "org/repo", std::string("org/repo/") + kFile}; }
    static std::vector<std::string> kept() {
        return {"org", "org/repo", std::string("org/repo/") + kFile + ".partial",
                std::string("org/repo/") + kFile + ".partial.json"};
    }

    // A partial with its record, as an earlier process leaves it.
    void leave_partial(const std::string& bytes, const std::string& model) {
        const std::string digest = to_hex(sha256(std::string_view(model)));
        write_file(partial(), bytes);
        write_file(
            partial().string() + ".json",
            nlohmann::json{{"etag", digest}, {"sha256", digest}, {"size", model.size()}, {"verified", false}}.dump());
    }

    static constexpr const char* kFile = "Model-Q4_K_M.gguf";
    fs::path root;
    CatalogFolders folders;
    std::atomic<bool> cancel{false};  // outlives the threads of the hub
    FaultyHub hub;
    PullOptions options;
};

// Ends the test when the result is none; evaluates it once.
#define EXPECT_ERROR(result, expected_code)                                                             \
    do {                                                                                                \
        const auto& once = (result);                                                                    \
        ASSERT_FALSE(once.ok());                                                                        \
        EXPECT_STREQ(to_string(once.error().code), to_string(expected_code)) << once.error().message(); \
    } while (false)

}  // namespace onebit::test
