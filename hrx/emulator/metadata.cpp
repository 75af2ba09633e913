#include "hrx/emulator/metadata.h"

#include "hrx/emulator/msgpack.h"

namespace onebit::emulator {
namespace {

using Kind = MsgPackValue::Kind;

Error damaged(const std::string& what) {
    return Error{ErrorCode::invalid, "code object metadata", what, "something else", "compile the kernel again"};
}

u32 number(const MsgPackValue& map, const std::string& key, u32 absent = 0) {
    const MsgPackValue* found = map.find(key, Kind::integer);
    return found == nullptr ? absent : static_cast<u32>(found->integer);
}

std::string text(const MsgPackValue& map, const std::string& key) {
    const MsgPackValue* found = map.find(key, Kind::text);
    return found == nullptr ? std::string() : found->text;
}

KernelMetadata read_kernel(const MsgPackValue& map) {
    KernelMetadata kernel;
    kernel.name = text(map, ".name");
    kernel.symbol = text(map, ".symbol");
    kernel.kernarg_bytes = number(map, ".kernarg_segment_size");
    kernel.kernarg_alignment = number(map, ".kernarg_segment_align", 8);
    kernel.group_bytes = number(map, ".group_segment_fixed_size");
    kernel.private_bytes = number(map, ".private_segment_fixed_size");
    kernel.vector_registers = number(map, ".vgpr_count");
    kernel.scalar_registers = number(map, ".sgpr_count");
    kernel.wave_size = number(map, ".wavefront_size");
    kernel.maximal_group_size = number(map, ".max_flat_workgroup_size");
    const MsgPackValue* stack = map.find(".uses_dynamic_stack", Kind::boolean);
    kernel.dynamic_stack = stack != nullptr && stack->boolean;
    if (const MsgPackValue* arguments = map.find(".args", Kind::array))
        for (const MsgPackValue& entry : arguments->array)
            kernel.arguments.push_back(
                {text(entry, ".name"), text(entry, ".value_kind"), number(entry, ".offset"), number(entry, ".size")});
    return kernel;
}

}  // namespace

Result<Metadata> parse_metadata(std::span<const u8> note) {
    auto document = parse_msgpack(note);
    if (!document) return damaged("a msgpack document");
    Metadata metadata;
    metadata.target = text(*document, "amdhsa.target");
    const MsgPackValue* kernels = document->find("amdhsa.kernels", Kind::array);
    if (kernels == nullptr) return damaged("an array 'amdhsa.kernels'");
    for (const MsgPackValue& kernel : kernels->array) metadata.kernels.push_back(read_kernel(kernel));
    return metadata;
}

}  // namespace onebit::emulator
