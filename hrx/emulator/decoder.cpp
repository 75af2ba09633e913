#include "hrx/emulator/decoder.h"

#include <mutex>

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace onebit::emulator {

struct Decoder::Parts {
    std::unique_ptr<llvm::MCRegisterInfo> registers;
    std::unique_ptr<llvm::MCAsmInfo> assembly;
    std::unique_ptr<llvm::MCInstrInfo> instructions;
    std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
    std::unique_ptr<llvm::MCContext> context;
    std::unique_ptr<llvm::MCDisassembler> disassembler;
    std::unique_ptr<llvm::MCInstPrinter> printer;
};

Decoder::Decoder(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

Result<Decoder> Decoder::create(const std::string& processor) {
    static std::once_flag initialised;
    std::call_once(initialised, [] {
        LLVMInitializeAMDGPUTargetInfo();
        LLVMInitializeAMDGPUTargetMC();
        LLVMInitializeAMDGPUDisassembler();
    });
    const std::string triple = "amdgcn-amd-amdhsa";
    std::string problem;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
    if (target == nullptr)
        return Error{ErrorCode::internal, "emulator", "LLVM with the AMDGPU target", problem,
                     "build with Debian's llvm-19"};

    auto parts = std::make_unique<Parts>();
    parts->registers.reset(target->createMCRegInfo(triple));
    parts->assembly.reset(target->createMCAsmInfo(*parts->registers, triple, llvm::MCTargetOptions()));
    parts->instructions.reset(target->createMCInstrInfo());
    parts->subtarget.reset(target->createMCSubtargetInfo(triple, processor, "+wavefrontsize32"));
    if (parts->subtarget == nullptr || !parts->subtarget->isCPUStringValid(processor))
        return Error{ErrorCode::unsupported, "emulator", "a processor that LLVM 19 knows", processor,
                     "compile for gfx1151"};
    parts->context = std::make_unique<llvm::MCContext>(llvm::Triple(triple), parts->assembly.get(),
                                                       parts->registers.get(), parts->subtarget.get());
    parts->disassembler.reset(target->createMCDisassembler(*parts->subtarget, *parts->context));
    parts->printer.reset(target->createMCInstPrinter(llvm::Triple(triple), 0, *parts->assembly, *parts->instructions,
                                                     *parts->registers));
    parts->printer->setPrintImmHex(false);
    return Decoder(std::move(parts));
}

std::optional<Decoded> Decoder::decode(std::span<const u8> code, u64 pc) {
    llvm::MCInst instruction;
    u64 size = 0;
    const auto status = parts_->disassembler->getInstruction(
        instruction, size, llvm::ArrayRef<u8>(code.data(), code.size()), pc, llvm::nulls());
    if (status != llvm::MCDisassembler::Success || size == 0) return std::nullopt;

    Decoded decoded;
    decoded.bytes = static_cast<u32>(size);
    llvm::raw_string_ostream stream(decoded.text);
    parts_->printer->printInst(&instruction, pc, "", *parts_->subtarget, stream);
    stream.flush();
    const auto first = decoded.text.find_first_not_of(" \t");
    decoded.text.erase(0, first == std::string::npos ? decoded.text.size() : first);
    for (char& c : decoded.text)
        if (c == '\t') c = ' ';
    for (const llvm::MCOperand& operand : instruction)
        if (operand.isImm()) decoded.immediates.push_back(operand.getImm());
    return decoded;
}

}  // namespace onebit::emulator
