// If this fails, members that disagree about where a tensor lies are not told apart, and compute on the wrong bytes.
#include "tandem/layout_manifest.h"

#include <gtest/gtest.h>

#include <cstring>

namespace onebit::tandem {
namespace {

ggml_tensor tensor(const char* name, int64_t columns, int64_t rows, ggml_type type = GGML_TYPE_F32) {
    ggml_tensor made = {};
    std::strncpy(made.name, name, sizeof made.name - 1);
    made.type = type;
    made.ne[0] = columns, made.ne[1] = rows, made.ne[2] = made.ne[3] = 1;
    made.nb[0] = ggml_type_size(type);
    made.nb[1] = ggml_row_size(type, columns);
    made.nb[2] = made.nb[3] = made.nb[1] * static_cast<size_t>(rows);
    return made;
}

TEST(LayoutManifest, TheSameViewIsRight) {
    LayoutManifest layout(4096, 128);
    ggml_tensor a = tensor("a", 8, 4), b = tensor("b", 64, 2, GGML_TYPE_Q8_0);
    ASSERT_TRUE(layout.add(&a, 0, 128).ok());
    ASSERT_TRUE(layout.add(&b, 128, 256).ok());
    EXPECT_TRUE(layout.check(&a, 0).ok());
    EXPECT_TRUE(layout.check(&b, 128).ok());
    EXPECT_TRUE(layout.overlaps().empty());
    EXPECT_NE(layout.text().find("128 b q8_0 ne [64, 2, 1, 1]"), std::string::npos) << layout.text();
}

TEST(LayoutManifest, EachFieldThatDiffersIsNamed) {
    LayoutManifest layout(4096, 128);
    const ggml_tensor right = tensor("a", 8, 4);
    ASSERT_TRUE(layout.add(&right, 256, 128).ok());
    const auto refused = [&](const ggml_tensor& view, const char* field) {
        const auto result = layout.check(&view, 256);
        ASSERT_FALSE(result.ok()) << field;
        EXPECT_NE(result.error().message().find(field), std::string::npos) << result.error().message();
    };
    refused(tensor("a", 8, 4, GGML_TYPE_F16), "type");
    refused(tensor("a", 4, 8), "ne");
    ggml_tensor strided = right;
    strided.nb[1] += 4;
    refused(strided, "nb");
    const ggml_tensor renamed = tensor("z", 8, 4);
    EXPECT_TRUE(layout.check(&renamed, 256).ok());
}

TEST(LayoutManifest, EdgesOfTheBuffer) {
    LayoutManifest layout(256, 128);
    const ggml_tensor fits = tensor("fits", 32, 1), large = tensor("large", 33, 1);
    EXPECT_TRUE(layout.add(&fits, 128, 128).ok());
    EXPECT_FALSE(layout.add(&large, 128, 132).ok());
    EXPECT_FALSE(layout.add(&fits, 64, 128).ok());
    EXPECT_FALSE(layout.add(&fits, 384, 128).ok());
    EXPECT_FALSE(layout.check(&large, 128).ok());
    EXPECT_FALSE(layout.check(&fits, SIZE_MAX - 3).ok());
}

TEST(LayoutManifest, TensorsThatShareBytesAreFound) {
    LayoutManifest layout(4096, 1);
    const ggml_tensor a = tensor("a", 8, 4), b = tensor("b", 8, 4);
    ASSERT_TRUE(layout.add(&a, 0, 129).ok());
    ASSERT_TRUE(layout.add(&b, 128, 128).ok());
    ASSERT_EQ(layout.overlaps().size(), 1u);
    EXPECT_EQ(layout.overlaps()[0], "a and b");
}

}  // namespace
}  // namespace onebit::tandem
