// A folder of the test's own, with files written into it, gone with the object: fake sysfs and proc trees.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

class TempTree {
public:
    TempTree() {
        std::string name = (std::filesystem::temp_directory_path() / "onebit-tree-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "cannot make " << name;
        root_ = name;
    }
    ~TempTree() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    TempTree(const TempTree&) = delete;
    TempTree& operator=(const TempTree&) = delete;

    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + "/" + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    std::string path(const std::string& below = {}) const { return below.empty() ? root_ : root_ + "/" + below; }

private:
    std::string root_;
};
