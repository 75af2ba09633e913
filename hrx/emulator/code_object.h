// Loads a code object (HSACO: an ELF shared object for amdgcn) and describes its kernels. Format: LLVM's "User Guide
// for AMDGPU Backend", sections ELF Code Object, Code Object Metadata and Kernel Descriptor. Threads: a loaded object
// is read-only but for kernel(), which may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/emulator/memory_map.h"
#include "hrx/emulator/metadata.h"
#include "hrx/emulator/program.h"

namespace onebit::emulator {

// The 64-byte kernel descriptor.
struct KernelDescriptor {
    u32 group_bytes = 0;
    u32 private_bytes = 0;
    u32 kernarg_bytes = 0;
    i64 entry_offset = 0;  // from the descriptor
    u32 rsrc3 = 0;
    u32 rsrc1 = 0;
    u32 rsrc2 = 0;
    u16 properties = 0;
    u16 preload = 0;

    u32 vector_registers() const { return ((rsrc1 & 63) + 1) * 8; }  // wave32
    u32 user_registers() const { return rsrc2 >> 1 & 31; }
    bool wave32() const { return (properties >> 10 & 1) != 0; }
};

struct Kernel {
    std::string name;
    KernelDescriptor descriptor;
    u64 object = 0;  // address of the descriptor: what a dispatch packet names
    u32 entry = 0;   // index of the first instruction
    const Program* program = nullptr;
    const KernelMetadata* metadata = nullptr;  // null when the note does not list it
};

struct Variable {
    std::string name;
    u64 address = 0;
    u64 bytes = 0;
};

class CodeObject {
public:
    // The image is mapped at an address of its own, relocated, and added to `memory` (writable parts as such) until the
    // object is destroyed. Errors name what of the ELF file is wrong, or the target that is not emulated.
    static Result<std::unique_ptr<CodeObject>> load(std::span<const u8> file, MemoryMap& memory);
    ~CodeObject();
    CodeObject(const CodeObject&) = delete;
    CodeObject& operator=(const CodeObject&) = delete;

    const std::vector<Kernel>& kernels() const { return kernels_; }
    const std::vector<Variable>& variables() const { return variables_; }
    const Metadata& metadata() const { return metadata_; }
    const std::string& processor() const { return processor_; }  // "gfx1151"
    // Null when no kernel has its descriptor there.
    const Kernel* kernel(u64 object) const;
    const Kernel* kernel(std::string_view name) const;

private:
    explicit CodeObject(MemoryMap& memory) : memory_(memory) {}
    Result<void> read(std::span<const u8> file);

    MemoryMap& memory_;
    u8* image_ = nullptr;
    std::size_t image_bytes_ = 0;
    std::vector<u64> regions_;
    std::string processor_;
    Metadata metadata_;
    std::vector<Kernel> kernels_;
    std::vector<Variable> variables_;
    std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace onebit::emulator
