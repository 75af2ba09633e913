// If this fails, the amdgpu driver takes another libhsa-runtime64 than the user named, or misses the one that is there.
// Covers SD02: a library that does not start is told with the call that failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/load_library.h"
#include "hrx/runtime/drivers/amdgpu/libhsa.h"
#include "hrx/runtime/drivers/elf.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::map<std::string, std::string>& variables() {
    static std::map<std::string, std::string> map;
    return map;
}
const char* variable(const char* name) {
    const auto found = variables().find(name);
    return found == variables().end() ? nullptr : found->second.c_str();
}

class LibhsaSearchTest : public testing::Test {
protected:
    LibhsaSearchTest() {
        std::string pattern = (fs::temp_directory_path() / "libhsa-XXXXXX").string();
        root_ = mkdtemp(pattern.data());
        variables().clear();
    }
    ~LibhsaSearchTest() override { fs::remove_all(root_); }
    std::string add(const std::string& path) {
        const fs::path file = root_ / path;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << "no library";
        return file.string();
    }
    std::vector<std::string> found() {
        std::vector<std::string> libraries;
        for (const Candidate& candidate : candidates(root_.string(), variable)) {
            if (candidate.missing.empty()) libraries.push_back(candidate.library);
        }
        return libraries;
    }
    fs::path root_;
};

constexpr const char* soname = "libhsa-runtime64.so.1";

TEST_F(LibhsaSearchTest, ANamedLibraryIsTheOnlyOne) {
    add("opt/rocm/lib/libhsa-runtime64.so.1");
    variables() = {{"ONEBIT_HRX_LIBHSA", "/some/where.so"}, {"IREE_HAL_AMDGPU_LIBHSA_PATH", "/other.so"}};
    const auto list = candidates(root_.string(), variable);
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].library, "/some/where.so");
    EXPECT_EQ(list[0].origin, "ONEBIT_HRX_LIBHSA");
}

TEST_F(LibhsaSearchTest, AVariableMayNameAFolder) {
    const std::string library = add("mine/libhsa-runtime64.so.1");
    variables() = {{"ONEBIT_HRX_LIBHSA", (root_ / "mine").string()}};
    EXPECT_EQ(found(), std::vector<std::string>{library});
    const std::string built = add("build/libhsa-runtime64.so");
    variables() = {{"ONEBIT_HRX_LIBHSA", (root_ / "build").string()}};
    EXPECT_EQ(found(), std::vector<std::string>{built});
    variables() = {{"ONEBIT_HRX_LIBHSA", root_.string()}};
    EXPECT_EQ(found(), std::vector<std::string>{(root_ / soname).string()});
}

TEST_F(LibhsaSearchTest, TheOrderIsVariableThenRocmThenWheelsThenSystem) {
    const std::string old = add("opt/rocm-9.9.1/lib/libhsa-runtime64.so.1");
    const std::string later = add("opt/rocm-10.0.0/lib/libhsa-runtime64.so.1");
    const std::string core = add("opt/rocm-10.0.0/core-10/lib/libhsa-runtime64.so.1");
    const std::string wheel = add("home/.local/lib/python3.12/site-packages/_rocm_sdk_core/lib/libhsa-runtime64.so.1");
    const std::string environment = add("venv/lib/python3.11/site-packages/_rocm_sdk_core/lib/libhsa-runtime64.so.1");
    variables() = {{"IREE_HAL_AMDGPU_LIBHSA_PATH", "/named.so"},
                   {"HOME", (root_ / "home").string()},
                   {"VIRTUAL_ENV", (root_ / "venv").string()}};
    EXPECT_EQ(found(), (std::vector<std::string>{"/named.so", later, core, old, environment, wheel, soname}));
}

TEST_F(LibhsaSearchTest, PlacesWithoutALibraryAreTold) {
    const auto list = candidates(root_.string(), variable);
    ASSERT_EQ(list.size(), 3u);
    EXPECT_THAT(list[0].missing, HasSubstr("no libhsa-runtime64.so.1"));
    EXPECT_THAT(list[0].library, HasSubstr("/opt/rocm*"));
    EXPECT_EQ(list[1].origin, "TheRock");
    EXPECT_EQ(list[2].library, soname);
    EXPECT_EQ(list[2].missing, "");
}

TEST_F(LibhsaSearchTest, ALibraryThatIsNoneIsToldWithTheCall) {
    const std::string file = add("broken.so");
    setenv("ONEBIT_HRX_LIBHSA", file.c_str(), 1);
    std::vector<ProbeEntry> tried;
    const auto started = load(tried);
    unsetenv("ONEBIT_HRX_LIBHSA");
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().code, ErrorCode::unavailable);
    EXPECT_THAT(started.error().message(), HasSubstr("ONEBIT_HRX_LIBHSA"));
    ASSERT_EQ(tried.size(), 1u);
    EXPECT_EQ(tried[0].call, "dlopen");
    EXPECT_THAT(tried[0].detail, HasSubstr("broken.so"));
    EXPECT_FALSE(tried[0].started);
}

// The loader would wait for a writer of the pipe for ever, and meet a bus error in the file that is cut short.
TEST_F(LibhsaSearchTest, FilesThatTheLoaderDoesNotSurviveAreTold) {
    const std::string pipe = (root_ / "pipe.so").string(), cut = (root_ / "cut.so").string();
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    fs::copy_file("/proc/self/exe", cut);
    fs::resize_file(cut, fs::file_size(cut) / 2);
    for (const auto& [file, why] : {std::pair{pipe, "not a regular file"}, std::pair{cut, "cut short"}}) {
        setenv("ONEBIT_HRX_LIBHSA", file.c_str(), 1);
        std::vector<ProbeEntry> tried;
        EXPECT_FALSE(load(tried).ok());
        unsetenv("ONEBIT_HRX_LIBHSA");
        ASSERT_EQ(tried.size(), 1u);
        EXPECT_EQ(tried[0].call, "dlopen");
        EXPECT_THAT(tried[0].detail, HasSubstr(why));
    }
    EXPECT_EQ(library_problem("libm.so.6"), "");
    EXPECT_EQ(library_problem("/proc/self/exe"), "");
    EXPECT_EQ(library_problem("/nowhere/at/all.so"), "");
    for (const std::uintmax_t size : {0, 3, 63, 64, 100}) {
        fs::resize_file(cut, size);
        std::string problem;
        EXPECT_EQ(load_library(cut, problem), nullptr) << size;
        EXPECT_NE(problem, "") << size;
    }
}

TEST_F(LibhsaSearchTest, ALibraryWithoutTheFunctionsIsToldWithTheirNames) {
    setenv("ONEBIT_HRX_LIBHSA", "libm.so.6", 1);
    std::vector<ProbeEntry> tried;
    EXPECT_FALSE(load(tried).ok());
    unsetenv("ONEBIT_HRX_LIBHSA");
    ASSERT_EQ(tried.size(), 1u);
    EXPECT_EQ(tried[0].call, "dlsym");
    EXPECT_THAT(tried[0].detail, HasSubstr("hsa_init"));
}

TEST(ElfTest, OnlyWholeFilesPass) {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(self), std::istreambuf_iterator<char>()};
    const auto image = std::as_bytes(std::span(text));
    EXPECT_TRUE(elf_is_complete(image));
    for (const size_t size : {size_t{0}, size_t{3}, size_t{63}, size_t{64}, size_t{200}, image.size() - 1}) {
        EXPECT_FALSE(elf_is_complete(image.first(size))) << size;
    }
    for (size_t byte = 32; byte < 64; ++byte) {
        // no offset or count may lead beyond the end, whatever it says
        std::vector<std::byte> wrong(image.begin(), image.begin() + 64);
        wrong[byte] = std::byte{0xFF};
        elf_is_complete(wrong);
    }
    std::vector<std::byte> header(image.begin(), image.end());
    for (size_t byte = 40; byte < 48; ++byte) header[byte] = std::byte{0xFF};
    EXPECT_FALSE(elf_is_complete(header));
}

}  // namespace
}  // namespace onebit::hrx::runtime::amdgpu
