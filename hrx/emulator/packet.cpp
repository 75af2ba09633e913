#include "hrx/emulator/packet.h"

#include <algorithm>

namespace onebit::emulator {

Dispatch read_dispatch(const hsa_kernel_dispatch_packet_t& packet, const Kernel& kernel, const MemoryMap& memory,
                       std::string& problem) {
    Dispatch dispatch;
    dispatch.kernel = &kernel;
    const u32 dimensions = packet.setup & 3;
    const u32 group[3] = {packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z};
    const u32 grid[3] = {packet.grid_size_x, packet.grid_size_y, packet.grid_size_z};
    u64 items = 1;
    auto wrong = [&](const std::string& field, u64 found, const std::string& expected) {
        if (problem.empty()) problem = field + " is " + std::to_string(found) + ", expected " + expected;
    };
    if (dimensions == 0) wrong("setup (dimensions)", dimensions, "1 to 3");
    for (u32 k = 0; k < 3; ++k) {
        const char axis = static_cast<char>('x' + k);
        if (k < dimensions && group[k] == 0) wrong(std::string("workgroup_size_") + axis, 0, "at least 1");
        if (k < dimensions && grid[k] == 0) wrong(std::string("grid_size_") + axis, 0, "at least 1");
        dispatch.group[k] = k < dimensions ? group[k] : 1;
        dispatch.grid[k] = k < dimensions ? grid[k] : 1;
        items *= dispatch.group[k];
    }
    u64 most = kLargestGroup;
    if (kernel.metadata != nullptr && kernel.metadata->maximal_group_size != 0)
        most = std::min<u64>(most, kernel.metadata->maximal_group_size);
    u64 groups = 1;
    for (u32 k = 0; k < 3 && problem.empty(); ++k)
        if (__builtin_mul_overflow(groups, (u64{dispatch.grid[k]} + dispatch.group[k] - 1) / dispatch.group[k],
                                   &groups))
            wrong("the number of groups", ~u64{0}, "fewer than 2^64");
    if (items > most) wrong("the number of work-items in a group", items, "at most " + std::to_string(most));

    const KernelDescriptor& d = kernel.descriptor;
    dispatch.group_bytes = packet.group_segment_size;
    dispatch.private_bytes = packet.private_segment_size;
    if (packet.group_segment_size < d.group_bytes)
        wrong("group_segment_size", packet.group_segment_size, "at least " + std::to_string(d.group_bytes));
    if (packet.group_segment_size > kLargestLds)
        wrong("group_segment_size", packet.group_segment_size, "at most " + std::to_string(kLargestLds));
    if (packet.private_segment_size < d.private_bytes)
        wrong("private_segment_size", packet.private_segment_size, "at least " + std::to_string(d.private_bytes));
    if (packet.private_segment_size > kLargestPrivate)
        wrong("private_segment_size", packet.private_segment_size, "at most " + std::to_string(kLargestPrivate));

    dispatch.kernarg = reinterpret_cast<u64>(packet.kernarg_address);
    if (d.kernarg_bytes != 0) {
        if (dispatch.kernarg % 16 != 0) wrong("kernarg_address modulo 16", dispatch.kernarg % 16, "0");
        MemoryPort port(memory);
        if (!port.inside(dispatch.kernarg, d.kernarg_bytes, false))
            wrong("kernarg_address", dispatch.kernarg,
                  std::to_string(d.kernarg_bytes) + " bytes inside of an allocation" + port.nearest(dispatch.kernarg));
    }
    return dispatch;
}

}  // namespace onebit::emulator
