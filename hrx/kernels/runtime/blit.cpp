// The kernels that libhrx itself needs: copy, fill, taking the time. Argument blocks: hrx/runtime/program_record.cpp.
#include "hrx/kernels/device.h"

namespace {

constexpr uint32_t threads = 256;

using Quad = uint32_t __attribute__((ext_vector_type(4)));

struct Range {
    uint64_t first, step;
};
// What a work-item of a one-dimensional grid walks over.
INLINE Range walk(uint32_t groups) {
    return {uint64_t{workgroup_id_x()} * threads + local_id_x(), uint64_t{groups} * threads};
}

template <typename T>
INLINE GLOBAL T* as(GLOBAL uint8_t* pointer) {
    return reinterpret_cast<GLOBAL T*>(pointer);
}

template <typename T>
INLINE void copy_as(GLOBAL uint8_t* destination, GLOBAL uint8_t* source, uint64_t count, Range range) {
    for (uint64_t i = range.first; i < count; i += range.step) as<T>(destination)[i] = as<T>(source)[i];
}

INLINE uint64_t address(GLOBAL uint8_t* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

struct Copy {
    GLOBAL uint8_t* destination;
    GLOBAL uint8_t* source;
    uint64_t size;
    uint32_t groups;
    uint32_t unused;
};

// In the largest units in which both ends are aligned alike, bytes before and after.
HRX_KERNEL(hrx_copy, Copy) {
    GLOBAL uint8_t* destination = arguments.destination;
    GLOBAL uint8_t* source = arguments.source;
    const Range range = walk(arguments.groups);
    const uint64_t difference = address(destination) ^ address(source);
    const uint32_t shift = (difference & 15) == 0 ? 4 : (difference & 3) == 0 ? 2 : 0;
    uint64_t head = (0 - address(destination)) & ((1u << shift) - 1);
    if (head > arguments.size) head = arguments.size;
    const uint64_t count = (arguments.size - head) >> shift, body = count << shift;
    copy_as<uint8_t>(destination, source, head, range);
    if (shift == 4) {
        copy_as<Quad>(destination + head, source + head, count, range);
    } else if (shift == 2) {
        copy_as<uint32_t>(destination + head, source + head, count, range);
    } else {
        copy_as<uint8_t>(destination + head, source + head, count, range);
    }
    copy_as<uint8_t>(destination + head + body, source + head + body, arguments.size - head - body, range);
}

struct Fill {
    GLOBAL uint8_t* destination;
    uint64_t size;
    uint32_t pattern;  // begins with its lowest byte at destination
    uint32_t groups;
};

HRX_KERNEL(hrx_fill, Fill) {
    GLOBAL uint8_t* destination = arguments.destination;
    const uint32_t pattern = arguments.pattern;
    const Range range = walk(arguments.groups);
    uint64_t head = (0 - address(destination)) & 15;
    if (head > arguments.size) head = arguments.size;
    const uint64_t count = (arguments.size - head) / 16, body = count * 16;
    for (uint64_t i = range.first; i < head; i += range.step) {
        destination[i] = static_cast<uint8_t>(pattern >> (i & 3) * 8);
    }
    // the pattern as it stands at the first aligned word
    const uint32_t turn = static_cast<uint32_t>(head & 3) * 8;
    const uint32_t turned = turn == 0 ? pattern : pattern >> turn | pattern << (32 - turn);
    for (uint64_t i = range.first; i < count; i += range.step) {
        as<Quad>(destination + head)[i] = Quad{turned, turned, turned, turned};
    }
    for (uint64_t i = head + body + range.first; i < arguments.size; i += range.step) {
        destination[i] = static_cast<uint8_t>(pattern >> (i & 3) * 8);
    }
}

struct Timestamp {
    GLOBAL uint64_t* time;
};

HRX_KERNEL(hrx_timestamp, Timestamp) { *arguments.time = clock_ticks(); }
