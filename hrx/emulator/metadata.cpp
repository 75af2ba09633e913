#include "hrx/emulator/metadata.h"

#include "llvm/BinaryFormat/MsgPackDocument.h"

namespace onebit::emulator {
namespace {

using llvm::msgpack::DocNode;
using llvm::msgpack::MapDocNode;

Error damaged(const std::string& what) {
    return Error{ErrorCode::invalid, "code object metadata", what, "something else", "compile the kernel again"};
}

u32 number(MapDocNode& map, llvm::StringRef key, u32 absent = 0) {
    auto found = map.find(key);
    if (found == map.end()) return absent;
    if (found->second.getKind() == llvm::msgpack::Type::UInt) return static_cast<u32>(found->second.getUInt());
    if (found->second.getKind() == llvm::msgpack::Type::Int) return static_cast<u32>(found->second.getInt());
    return absent;
}

std::string text(MapDocNode& map, llvm::StringRef key) {
    auto found = map.find(key);
    return found != map.end() && found->second.isString() ? found->second.getString().str() : std::string();
}

KernelMetadata read_kernel(MapDocNode& map) {
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
    auto stack = map.find(".uses_dynamic_stack");
    kernel.dynamic_stack =
        stack != map.end() && stack->second.getKind() == llvm::msgpack::Type::Boolean && stack->second.getBool();
    auto arguments = map.find(".args");
    if (arguments == map.end() || !arguments->second.isArray()) return kernel;
    for (DocNode& node : arguments->second.getArray()) {
        if (!node.isMap()) continue;
        MapDocNode& entry = node.getMap();
        kernel.arguments.push_back(
            {text(entry, ".name"), text(entry, ".value_kind"), number(entry, ".offset"), number(entry, ".size")});
    }
    return kernel;
}

}  // namespace

Result<Metadata> parse_metadata(std::span<const u8> note) {
    llvm::msgpack::Document document;
    if (!document.readFromBlob(llvm::StringRef(reinterpret_cast<const char*>(note.data()), note.size()), false))
        return damaged("a msgpack document");
    if (!document.getRoot().isMap()) return damaged("a map at the root");
    MapDocNode& root = document.getRoot().getMap();
    Metadata metadata;
    metadata.target = text(root, "amdhsa.target");
    auto kernels = root.find("amdhsa.kernels");
    if (kernels == root.end() || !kernels->second.isArray()) return damaged("an array 'amdhsa.kernels'");
    for (DocNode& node : kernels->second.getArray()) {
        if (!node.isMap()) return damaged("a map for each kernel");
        metadata.kernels.push_back(read_kernel(node.getMap()));
    }
    return metadata;
}

}  // namespace onebit::emulator
