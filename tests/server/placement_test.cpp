// Breaks when 1bit ps shows memory that the engine did not count, or a page of any content harms the supervisor.
#include "server/supervisor/placement.h"

#include <gtest/gtest.h>

#include <thread>

namespace onebit {
namespace {

// DEV27
TEST(Placement, DEV27_what_is_written_is_read) {
    PlacementTable table{};
    EXPECT_TRUE(read_placement(table).empty());
    const std::vector<DeviceMemory> two = {{"CPU", 1, 2, 3, 4}, {"Vulkan0", UINT64_MAX, 0, 7, 33}};
    write_placement(table, two);
    EXPECT_EQ(read_placement(table), two);
    write_placement(table, {});
    EXPECT_TRUE(read_placement(table).empty());
    write_placement(table, {{std::string(47, 'a'), 1, 1, 1, 1}, {std::string(48, 'b'), 1, 1, 1, 1}});
    EXPECT_EQ(read_placement(table)[0].device, std::string(47, 'a'));
    EXPECT_EQ(read_placement(table)[1].device, std::string(47, 'b'));
}

TEST(Placement, more_devices_than_places_lose_no_bytes) {
    PlacementTable table{};
    std::vector<DeviceMemory> many(PlacementTable::kEntries + 3, DeviceMemory{"d", 1, 10, 100, 1});
    write_placement(table, many);
    std::vector<DeviceMemory> read = read_placement(table);
    ASSERT_EQ(read.size(), PlacementTable::kEntries);
    EXPECT_EQ(read.back(), (DeviceMemory{"d", 4, 40, 400, 4}));
    many.resize(PlacementTable::kEntries);
    write_placement(table, many);
    EXPECT_EQ(read_placement(table), many);
}

TEST(Placement, any_content_is_read_without_harm) {
    PlacementTable table{};
    table.count = UINT64_MAX;
    for (auto& entry : table.entries)
        for (auto& word : entry.name) word = UINT64_MAX;
    EXPECT_EQ(read_placement(table).size(), PlacementTable::kEntries);
    EXPECT_EQ(read_placement(table)[0].device.size(), PlacementTable::kNameWords * 8);
    table.version = 7;  // a writer that died
    EXPECT_TRUE(read_placement(table).empty());
    write_placement(table, {{"CPU", 1, 2, 3, 4}});
    EXPECT_EQ(read_placement(table).size(), 1u);
}

TEST(Placement, a_reader_never_sees_half_of_a_change) {
    PlacementTable table{};
    write_placement(table, {{"a", 0, 0, 0, 0}});
    std::atomic<bool> over{false};
    std::thread writer([&] {
        for (uint64_t i = 1; i <= 20000; i++) write_placement(table, {{"a", i, i, i, 0}});
        over = true;
    });
    while (!over)
        for (const DeviceMemory& row : read_placement(table))
            if (row.weights != row.kv_cache || row.kv_cache != row.compute) {
                ADD_FAILURE() << row.weights << " " << row.kv_cache << " " << row.compute;
                break;
            }
    writer.join();
}

}  // namespace
}  // namespace onebit
