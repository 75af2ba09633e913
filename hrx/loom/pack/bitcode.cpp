#include "hrx/loom/pack/bitcode.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SHA256.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "hrx/loom/bitcode_seal.h"

namespace onebit::loom {
namespace {

constexpr const char* clean_up =
    "always-inline,globaldce,function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,simplifycfg),"
    "globaldce,"
    "strip";

// The four numbers of a LoomRecord (hrx/kernels/specialise.h).
std::optional<std::vector<uint64_t>> read_record(const llvm::GlobalVariable& global) {
    if (!global.hasInitializer()) return std::nullopt;
    const llvm::Constant* values = global.getInitializer()->getAggregateElement(0u);
    std::vector<uint64_t> numbers;
    for (unsigned i = 0; i < 4; i++) {
        const auto* number =
            llvm::dyn_cast_or_null<llvm::ConstantInt>(values ? values->getAggregateElement(i) : nullptr);
        if (number == nullptr) return std::nullopt;
        numbers.push_back(number->getZExtValue());
    }
    return numbers;
}

// "columns" of "loom.argument.rms_norm.columns"
std::string last_part(llvm::StringRef name) { return name.rsplit('.').second.str(); }

Result<std::vector<PackedKernel>> read_declarations(const llvm::Module& module, const std::string& source) {
    const auto refuse = [&](llvm::StringRef name) {
        return Error{ErrorCode::invalid, source, "declarations by LOOM_KERNEL, LOOM_ARGUMENT and LOOM_OPTION",
                     name.str(), ""};
    };
    std::vector<PackedKernel> kernels;
    for (const llvm::GlobalVariable& global : module.globals()) {
        if (!global.getName().starts_with("loom.kernel.")) continue;
        const auto record = read_record(global);
        if (!record) return refuse(global.getName());
        PackedKernel kernel;
        kernel.name = last_part(global.getName());
        kernel.workgroup = static_cast<uint32_t>((*record)[0]);
        kernel.argument_bytes = static_cast<uint32_t>((*record)[1]);
        kernels.push_back(std::move(kernel));
    }
    for (const llvm::GlobalVariable& global : module.globals()) {
        const llvm::StringRef name = global.getName();
        const bool option = name.starts_with("loom.option.");
        if (!option && !name.starts_with("loom.argument.")) continue;
        const auto record = read_record(global);
        const std::string owner = name.drop_front(option ? 12 : 14).rsplit('.').first.str();
        const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                         [&](const PackedKernel& candidate) { return candidate.name == owner; });
        if (!record || kernel == kernels.end()) return refuse(name);
        const auto number = [&](size_t i) { return static_cast<uint32_t>((*record)[i]); };
        kernel->constants.push_back({last_part(name), option, number(0), number(1), number(2), number(3)});
    }
    for (PackedKernel& kernel : kernels) {
        std::sort(kernel.constants.begin(), kernel.constants.end(),
                  [](const PackedConstant& a, const PackedConstant& b) { return a.name < b.name; });
    }
    std::sort(kernels.begin(), kernels.end(),
              [](const PackedKernel& a, const PackedKernel& b) { return a.name < b.name; });
    return kernels;
}

void keep_one_kernel(llvm::Module& module, const std::string& kernel) {
    for (const char* list : {"llvm.used", "llvm.compiler.used"}) {
        if (llvm::GlobalVariable* global = module.getNamedGlobal(list)) global->eraseFromParent();
    }
    // Loom writes its own annotations; those of other kernels would keep them alive
    for (const char* note : {"nvvm.annotations", "llvm.ident"}) {
        if (llvm::NamedMDNode* node = module.getNamedMetadata(note)) node->eraseFromParent();
    }
    const auto hide = [](llvm::GlobalValue& value) {
        value.setLinkage(llvm::GlobalValue::InternalLinkage);
        value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    };
    for (llvm::Function& function : module) {
        if (function.isDeclaration() || function.getName() == kernel) continue;
        hide(function);
        // lambdas, and helpers that forgot to say so: a call would need a stack
        function.removeFnAttr(llvm::Attribute::NoInline);
        function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
    for (llvm::GlobalVariable& global : module.globals()) {
        if (!global.isDeclaration()) hide(global);
    }
}

void run_passes(llvm::Module& module, llvm::Error* problem) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager calls;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(calls);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, calls, modules);
    llvm::ModulePassManager passes;
    *problem = builder.parsePassPipeline(passes, clean_up);
    if (!*problem) passes.run(module, modules);
}

std::vector<std::byte> seal(const llvm::Module& module) {
    llvm::SmallVector<char, 0> bitcode;
    llvm::raw_svector_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(module, stream);
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(bitcode.data()), bitcode.size());
    const auto digest = llvm::SHA256::hash(bytes);
    std::vector<std::byte> sealed;
    const auto append = [&](const auto& part) {
        const auto* begin = reinterpret_cast<const std::byte*>(part.data());
        sealed.insert(sealed.end(), begin, begin + part.size());
    };
    append(seal_magic);
    append(digest);
    append(bitcode);
    return sealed;
}

Result<std::vector<std::byte>> extract(llvm::MemoryBufferRef buffer, const std::string& kernel,
                                       const std::string& source) {
    const auto refuse = [&](const std::string& found) {
        return Error{ErrorCode::invalid, source + ", kernel " + kernel, "code that Loom can take", found, ""};
    };
    llvm::LLVMContext context;
    auto parsed = llvm::parseBitcodeFile(buffer, context);
    if (!parsed) return refuse(llvm::toString(parsed.takeError()));
    llvm::Module& module = **parsed;
    module.setModuleIdentifier(source);
    module.setSourceFileName(source);
    const llvm::Function* function = module.getFunction(kernel);
    if (function == nullptr || function->isDeclaration()) return refuse("no function of this name");
    keep_one_kernel(module, kernel);
    llvm::Error problem = llvm::Error::success();
    run_passes(module, &problem);
    if (problem) return refuse(llvm::toString(std::move(problem)));
    for (const llvm::Function& left : module) {
        if (!left.isDeclaration() && left.getName() != kernel) {
            return refuse("a function that calls itself, or whose address is taken");
        }
        if (left.isDeclaration() && !left.isIntrinsic())
            return refuse("a call of " + left.getName().str() + ", which nothing defines");
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (llvm::verifyModule(module, &stream)) return refuse(text);
    return seal(module);
}

}  // namespace

Result<std::vector<PackedKernel>> split_bitcode(const std::string& file, const std::string& source) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) return error_from_errno(buffer.getError().value(), file);
    llvm::LLVMContext context;
    auto module = llvm::parseBitcodeFile((*buffer)->getMemBufferRef(), context);
    if (!module) return Error{ErrorCode::invalid, file, "bitcode", llvm::toString(module.takeError()), ""};
    const bool amd = llvm::StringRef((*module)->getTargetTriple()).starts_with("amdgcn");
    auto kernels = read_declarations(**module, source);
    if (!kernels.ok()) return kernels;
    for (PackedKernel& kernel : *kernels) {
        auto bitcode = extract((*buffer)->getMemBufferRef(), kernel.name, source);
        if (!bitcode.ok()) return std::move(bitcode).error();
        (amd ? kernel.amdgcn : kernel.nvptx) = std::move(*bitcode);
    }
    return kernels;
}

}  // namespace onebit::loom
