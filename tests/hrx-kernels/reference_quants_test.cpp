// If this fails, the tests' idea of a weight format differs from ggml's: kernels checked against it read models
// wrongly.
#include <ggml.h>

#include "tests/hrx-kernels/kernel_testing.h"
#include "tests/hrx-kernels/reference_quants.h"

namespace onebit::hrx::kernels::test {
namespace {

TEST(ReferenceQuants, AgreeWithGgml) {
    for (const Format& format : formats()) {
        const ggml_type_traits* traits = nullptr;
        for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
            const auto* candidate = ggml_get_type_traits(static_cast<ggml_type>(type));
            if (candidate->type_name != nullptr && format.ggml_name == candidate->type_name) traits = candidate;
        }
        ASSERT_NE(traits, nullptr) << format.name;
        ASSERT_EQ(traits->blck_size, format.block);
        ASSERT_EQ(traits->type_size, format.bytes);
        Random random(11);
        auto blocks = random_blocks(format, 64, random);
        if (format.name == "iq3_xxs") {
            // every vector of the codebook
            for (int i = 0; i < 256; ++i) blocks[(i / 64) * format.bytes + 2 + i % 64] = static_cast<uint8_t>(i);
        }
        const auto want = decode(format, blocks);
        std::vector<float> seen(want.size());
        traits->to_float(blocks.data(), seen.data(), static_cast<int64_t>(seen.size()));
        for (size_t i = 0; i < want.size(); ++i) {
            ASSERT_TRUE(close(seen[i], want[i].value, 4e-7, want[i].magnitude)) << format.name << " weight " << i;
        }
    }
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
