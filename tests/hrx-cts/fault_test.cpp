// If this fails, a kernel that touches memory it has not got makes the process hang or die instead of ending in an
// error.
#include <cstdlib>

#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

class FaultTest : public CtsTest {
protected:
    FaultTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

    // In a process of its own, since a device of CUDA is lost for the whole process. Exit code 0: all as it should be.
    [[noreturn]] void fault() const {
        int code = 1;
        try {
            const Semaphore done = must(device().create_semaphore());
            const Buffer small = zeros(16);
            const Program work = program();
            // 2^38 bytes beyond the buffer
            must(dispatch(work, "cts_poke", 1, {bind(small)}, {0, 1u << 6}));
            must(work.finish());
            const hrx_semaphore_value signals[] = {at(done, 1)};
            must(queue().submit(work, {}, signals));
            const auto waited = done.wait(1, patience);
            std::fprintf(stderr, "%s\n", waited.ok() ? "the wait worked" : waited.error().message().c_str());
            const auto again = queue().submit(work);
            if (fails(waited, ErrorCode::cancelled) && fails(again, ErrorCode::cancelled)) code = 0;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
        }
        std::fflush(stderr);
        _exit(code);
    }
};
INSTANTIATE_TEST_SUITE_P(Driver, FaultTest, testing::ValuesIn(onebit::hrx::driver_names()),
                         onebit::hrx::driver_test_name);

TEST_P(FaultTest, AWriteToNowhereLosesTheDeviceWithAMessage) {
    EXPECT_EXIT(fault(), testing::ExitedWithCode(0), GetParam() == "cuda" ? "cuEventQuery.*CUDA_ERROR" : "expected");
}

}  // namespace
}  // namespace onebit::hrx::cts
