#include "tests/hrx/emulator/assembler.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmParser();
}

namespace onebit::emulator {
namespace {

// .text of a relocatable ELF file.
std::vector<std::uint8_t> text_section(const llvm::SmallVectorImpl<char>& object) {
    Elf64_Ehdr header;
    std::memcpy(&header, object.data(), sizeof(header));
    auto section = [&](unsigned index) {
        Elf64_Shdr result;
        std::memcpy(&result, object.data() + header.e_shoff + index * sizeof(result), sizeof(result));
        return result;
    };
    const Elf64_Shdr names = section(header.e_shstrndx);
    for (unsigned k = 0; k < header.e_shnum; ++k) {
        const Elf64_Shdr candidate = section(k);
        if (std::strcmp(object.data() + names.sh_offset + candidate.sh_name, ".text") != 0) continue;
        const auto* begin = reinterpret_cast<const std::uint8_t*>(object.data()) + candidate.sh_offset;
        return {begin, begin + candidate.sh_size};
    }
    return {};
}

}  // namespace

std::vector<std::uint8_t> assemble(const std::string& text, const std::string& processor) {
    static const bool initialised = [] {
        LLVMInitializeAMDGPUTargetInfo();
        LLVMInitializeAMDGPUTargetMC();
        LLVMInitializeAMDGPUAsmParser();
        return true;
    }();
    (void)initialised;
    const std::string name = "amdgcn-amd-amdhsa";
    const llvm::Triple triple(name);
    std::string problem;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(name, problem);
    llvm::MCTargetOptions options;
    std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(name));
    std::unique_ptr<llvm::MCAsmInfo> assembly(target->createMCAsmInfo(*registers, name, options));
    std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
    std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
        target->createMCSubtargetInfo(name, processor, "+wavefrontsize32"));
    llvm::SourceMgr source;
    source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text), llvm::SMLoc());
    std::string diagnostics;
    source.setDiagHandler(
        [](const llvm::SMDiagnostic& diagnostic, void* out) {
            *static_cast<std::string*>(out) +=
                diagnostic.getMessage().str() + " in: " + diagnostic.getLineContents().str();
        },
        &diagnostics);
    llvm::MCContext context(triple, assembly.get(), registers.get(), subtarget.get(), &source, &options);
    std::unique_ptr<llvm::MCObjectFileInfo> sections(target->createMCObjectFileInfo(context, false));
    context.setObjectFileInfo(sections.get());
    llvm::SmallVector<char, 0> object;
    llvm::raw_svector_ostream stream(object);
    std::unique_ptr<llvm::MCAsmBackend> backend(target->createMCAsmBackend(*subtarget, *registers, options));
    std::unique_ptr<llvm::MCObjectWriter> writer = backend->createObjectWriter(stream);
    std::unique_ptr<llvm::MCCodeEmitter> emitter(target->createMCCodeEmitter(*instructions, context));
    std::unique_ptr<llvm::MCStreamer> streamer(target->createMCObjectStreamer(
        triple, context, std::move(backend), std::move(writer), std::move(emitter), *subtarget));
    std::unique_ptr<llvm::MCAsmParser> parser(llvm::createMCAsmParser(source, context, *streamer, *assembly));
    std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
        target->createMCAsmParser(*subtarget, *parser, *instructions, options));
    parser->setTargetParser(*target_parser);
    if (parser->Run(false)) {
        ADD_FAILURE() << "cannot assemble '" << text << "': " << diagnostics;
        return {};
    }
    return text_section(object);
}

}  // namespace onebit::emulator
