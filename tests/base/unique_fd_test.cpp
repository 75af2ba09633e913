// If this fails, file descriptors leak or one that belongs to somebody else is closed.
#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace onebit {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
int some_fd() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFd, ClosesWhatItOwnsOnce) {
    int fd = -1;
    {
        UniqueFd owner(some_fd());
        fd = owner.get();
        EXPECT_TRUE(owner && is_open(fd));
    }
    EXPECT_FALSE(is_open(fd));
}

TEST(UniqueFd, MovesAndReleases) {
    UniqueFd first(some_fd());
    const int fd = first.get();
    UniqueFd second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), fd);
    UniqueFd& same = second;
    second = std::move(same);
    EXPECT_TRUE(is_open(fd)) << "assigning to itself keeps it";
    UniqueFd third(some_fd());
    const int closed = third.get();
    third = std::move(second);
    EXPECT_FALSE(is_open(closed));
    EXPECT_EQ(third.release(), fd);
    EXPECT_TRUE(is_open(fd));
    UniqueFd(fd).reset();
    EXPECT_FALSE(is_open(fd));
}

TEST(UniqueFd, DescriptorZeroIsOwnedToo) {
    UniqueFd none;
    EXPECT_FALSE(none);
    UniqueFd zero(0);
    EXPECT_TRUE(zero);
    zero.release();
}

}  // namespace
}  // namespace onebit
