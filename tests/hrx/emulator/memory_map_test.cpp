// If this fails, accesses outside of allocations go unnoticed or good ones trap.
#include "hrx/emulator/memory_map.h"

#include <gtest/gtest.h>

#include <thread>

namespace onebit::emulator {

TEST(MemoryMap, RegionsDoNotOverlap) {
    MemoryMap map;
    EXPECT_TRUE(map.add({1000, 100, true}));
    EXPECT_FALSE(map.add({1000, 100, true}));
    EXPECT_FALSE(map.add({1099, 1, true}));
    EXPECT_FALSE(map.add({900, 101, true}));
    EXPECT_FALSE(map.add({900, 1000, true}));
    EXPECT_FALSE(map.add({5000, 0, true}));
    EXPECT_FALSE(map.add({~u64{0} - 1, 10, true}));
    EXPECT_TRUE(map.add({1100, 1, true}));
    EXPECT_TRUE(map.add({999, 1, true}));
    EXPECT_FALSE(map.remove(1001));
    EXPECT_TRUE(map.remove(1000));
    EXPECT_FALSE(map.find(1050));
    EXPECT_EQ(map.find(1100)->bytes, 1u);
}

TEST(MemoryMap, PortSeesEdgesAndChanges) {
    MemoryMap map;
    MemoryPort port(map);
    EXPECT_FALSE(port.inside(0, 1, false));
    ASSERT_TRUE(map.add({4096, 64, true}));
    ASSERT_TRUE(map.add({8192, 64, false}));
    EXPECT_TRUE(port.inside(4096, 64, true));
    EXPECT_TRUE(port.inside(4156, 4, true));
    EXPECT_FALSE(port.inside(4157, 4, true));
    EXPECT_FALSE(port.inside(4095, 1, false));
    EXPECT_FALSE(port.inside(4096, 65, false));
    EXPECT_TRUE(port.inside(8192, 4, false));
    EXPECT_FALSE(port.inside(8192, 4, true));
    EXPECT_FALSE(port.inside(~u64{0}, 4, false));
    ASSERT_TRUE(map.remove(4096));
    EXPECT_FALSE(port.inside(4096, 1, false));
    EXPECT_NE(port.nearest(9000).find("0x2000"), std::string::npos);
}

TEST(MemoryMap, AllLanesAtOnce) {
    MemoryMap map;
    ASSERT_TRUE(map.add({4096, 128, true}));
    MemoryPort port(map);
    u64 addresses[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = 4096 + 4 * static_cast<u64>(lane);
    EXPECT_TRUE(port.all_inside(addresses, kAllLanes, 4, true));
    addresses[31] += 1;
    EXPECT_FALSE(port.all_inside(addresses, kAllLanes, 4, true));
    EXPECT_TRUE(port.all_inside(addresses, 0x7fffffff, 4, true));
    addresses[5] = 0;
    EXPECT_FALSE(port.all_inside(addresses, 0x7fffffff, 4, true));
    EXPECT_TRUE(port.all_inside(addresses, 0, 4, true));
}

TEST(MemoryMap, ManyRegionsFromManyThreads) {
    MemoryMap map;
    std::vector<std::thread> threads;
    for (u64 t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            MemoryPort port(map);
            for (u64 k = 0; k < 200; ++k) {
                const u64 base = (t * 1000 + k + 1) << 16;
                EXPECT_TRUE(map.add({base, 100, true}));
                EXPECT_TRUE(port.inside(base + 96, 4, true));
                if (k % 2 == 0) {
                    EXPECT_TRUE(map.remove(base));
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(map.table()->size(), 400u);
}

}  // namespace onebit::emulator
