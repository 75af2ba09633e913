#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetOptions.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "hrx/loom/compiler/unit.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmPrinter();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace onebit::loom {
namespace {

// Of this library's own LLVM, so that nobody else in the process is touched.
void set_options() {
    // loop strength reduction takes up to half of the time, and leaves kernels with more instructions and registers
    static constexpr const char* options[] = {"loom", "-disable-lsr"};
    llvm::cl::ParseCommandLineOptions(static_cast<int>(std::size(options)), options);
}

// A compilation allocates and frees some 20 MB. glibc hands that back to the kernel each time, and takes it again page
// by page, until a program has freed one block of such a size: then it keeps as much. A third of a small kernel's time.
void keep_freed_memory() {
    void* volatile block = std::malloc(24u << 20);
    std::free(block);
}

void register_targets() {
    static std::once_flag once;
    std::call_once(once, [] {
        keep_freed_memory();
        set_options();
        LLVMInitializeAMDGPUTargetInfo();
        LLVMInitializeAMDGPUTarget();
        LLVMInitializeAMDGPUTargetMC();
        LLVMInitializeAMDGPUAsmPrinter();
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
    });
}

struct Machines {
    std::mutex mutex;
    std::multimap<const Target*, std::unique_ptr<llvm::TargetMachine>> idle;
};

// Never destroyed: a thread may still compile while the process ends.
Machines& machines() {
    static Machines* const all = new Machines;
    return *all;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
    const char* triple = target.is_amd() ? "amdgcn-amd-amdhsa" : "nvptx64-nvidia-cuda";
    std::string problem;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, problem);
    if (found == nullptr) return nullptr;
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
    options.NoTrappingFPMath = true;
    return std::unique_ptr<llvm::TargetMachine>(
        found->createTargetMachine(triple, llvm::StringRef(target.name), llvm::StringRef(target.features), options,
                                   llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> take_machine(const Target& target) {
    register_targets();
    {
        Machines& all = machines();
        const std::lock_guard lock(all.mutex);
        if (const auto at = all.idle.find(&target); at != all.idle.end()) {
            auto machine = std::move(at->second);
            all.idle.erase(at);
            return machine;
        }
    }
    return make_machine(target);
}

void give_back_machine(const Target& target, std::unique_ptr<llvm::TargetMachine> machine) {
    Machines& all = machines();
    const std::lock_guard lock(all.mutex);
    all.idle.emplace(&target, std::move(machine));
}

loom_result generate(Unit& unit, std::vector<char>* output) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    const bool object = unit.target->is_amd() && unit.request->output == LOOM_IMAGE;
    llvm::legacy::PassManager passes;
    if (unit.machine->addPassesToEmitFile(
            passes, stream, nullptr, object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile,
            true)) {
        return refuse(unit.error, LOOM_UNSUPPORTED, unit.request->target, "a target that can emit this output", "none");
    }
    passes.run(*unit.module);
    if (!unit.complaint.empty()) {
        return refuse(unit.error, LOOM_FAILED,
                      std::string("kernel ") + unit.request->kernel + " for " + unit.request->target,
                      "a kernel that fits the chip", unit.complaint);
    }
    output->assign(bytes.begin(), bytes.end());
    return LOOM_OK;
}

}  // namespace onebit::loom
