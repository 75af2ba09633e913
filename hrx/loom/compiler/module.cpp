#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SHA256.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>

#include "hrx/loom/bitcode_seal.h"
#include "hrx/loom/compiler/unit.h"

namespace onebit::loom {
namespace {

constexpr std::string_view value_prefix = "loom.value.";

// Keeps the first error of the back end, such as too much memory for a group.
class Diagnostics : public llvm::DiagnosticHandler {
public:
    explicit Diagnostics(std::string* complaint) : complaint_(complaint) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
        if (info.getSeverity() == llvm::DS_Error && complaint_->empty()) {
            llvm::raw_string_ostream stream(*complaint_);
            llvm::DiagnosticPrinterRawOStream printer(stream);
            info.print(printer);
        }
        return true;
    }

private:
    std::string* complaint_;
};

std::string kernel_name(const Unit& unit) { return std::string("kernel ") + unit.request->kernel; }

loom_result damaged(Unit& unit, const std::string& found) {
    return refuse(unit.error, LOOM_INVALID_DATA, kernel_name(unit), "sealed bitcode of this LLVM", found);
}

const loom_constant* find_value(const loom_request& request, llvm::StringRef name) {
    for (uint32_t i = 0; i < request.constant_count; i++) {
        if (name == request.constants[i].name) return &request.constants[i];
    }
    return nullptr;
}

void fix(llvm::GlobalVariable& global, uint64_t value) {
    global.setInitializer(llvm::ConstantInt::get(global.getValueType(), value));
    global.setConstant(true);
    global.setLinkage(llvm::GlobalValue::InternalLinkage);
    global.setVisibility(llvm::GlobalValue::DefaultVisibility);
}

loom_result fix_globals(Unit& unit) {
    const std::string prefix = std::string(value_prefix) + unit.request->kernel + ".";
    for (llvm::GlobalVariable& global : unit.module->globals()) {
        const llvm::StringRef name = global.getName();
        if (name == "loom.target.generation") {
            fix(global, unit.target->generation);
        } else if (name.starts_with(prefix)) {
            const llvm::StringRef constant = name.drop_front(prefix.size());
            const loom_constant* value = find_value(*unit.request, constant);
            if (value == nullptr) {
                return refuse(unit.error, LOOM_INVALID_ARGUMENT, kernel_name(unit) + ", constant " + constant.str(),
                              "a value, or LOOM_RUN_TIME", "none");
            }
            if (value->value > 0xffffffffu && value->value != LOOM_RUN_TIME) {
                return refuse(unit.error, LOOM_INVALID_ARGUMENT, kernel_name(unit) + ", constant " + constant.str(),
                              "0 to 4294967295", std::to_string(value->value));
            }
            fix(global, value->value);
        } else if (name.starts_with(value_prefix)) {
            return damaged(unit, "a constant of another kernel: " + name.str());
        }
    }
    return LOOM_OK;
}

void describe_amd_kernel(Unit& unit) {
    const std::string size = std::to_string(unit.request->workgroup);
    unit.kernel->addFnAttr("amdgpu-flat-work-group-size", size + "," + size);
    unit.kernel->addFnAttr("uniform-work-group-size", "true");
    // what no kernel asks for need not be loaded into registers at its start
    for (const char* unused :
         {"amdgpu-no-completion-action", "amdgpu-no-default-queue", "amdgpu-no-dispatch-id", "amdgpu-no-dispatch-ptr",
          "amdgpu-no-heap-ptr", "amdgpu-no-hostcall-ptr", "amdgpu-no-implicitarg-ptr", "amdgpu-no-lds-kernel-id",
          "amdgpu-no-multigrid-sync-arg", "amdgpu-no-queue-ptr"}) {
        unit.kernel->addFnAttr(unused);
    }
    const auto unless_called = [&](const char* intrinsic, const char* attribute) {
        const llvm::Function* function = unit.module->getFunction(intrinsic);
        if (function == nullptr || function->use_empty()) unit.kernel->addFnAttr(attribute);
    };
    unless_called("llvm.amdgcn.workgroup.id.y", "amdgpu-no-workgroup-id-y");
    unless_called("llvm.amdgcn.workgroup.id.z", "amdgpu-no-workgroup-id-z");
    unless_called("llvm.amdgcn.workitem.id.y", "amdgpu-no-workitem-id-y");
    unless_called("llvm.amdgcn.workitem.id.z", "amdgpu-no-workitem-id-z");
}

void describe_nvidia_kernel(Unit& unit) {
    llvm::LLVMContext& context = unit.context;
    llvm::NamedMDNode* annotations = unit.module->getOrInsertNamedMetadata("nvvm.annotations");
    annotations->clearOperands();
    const auto add = [&](const char* key, uint32_t value) {
        annotations->addOperand(llvm::MDNode::get(
            context, {llvm::ValueAsMetadata::get(unit.kernel), llvm::MDString::get(context, key),
                      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value))}));
    };
    add("kernel", 1);
    add("maxntidx", unit.request->workgroup);
}

llvm::ArrayRef<uint8_t> bytes_of(llvm::StringRef text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

loom_result refuse(loom_error* error, loom_result result, const std::string& subject, const std::string& expected,
                   const std::string& found) {
    const auto put = [](char* to, size_t size, const std::string& text) {
        const size_t count = std::min(size - 1, text.size());
        std::memcpy(to, text.data(), count);
        to[count] = 0;
    };
    put(error->subject, sizeof error->subject, subject);
    put(error->expected, sizeof error->expected, expected);
    put(error->found, sizeof error->found, found);
    return result;
}

loom_result read_module(Unit& unit) {
    const llvm::StringRef sealed(static_cast<const char*>(unit.request->bitcode), unit.request->bitcode_bytes);
    if (sealed.size() <= seal_bytes || !sealed.starts_with(llvm::StringRef(seal_magic))) {
        return damaged(unit, std::to_string(sealed.size()) + " bytes without a seal");
    }
    const llvm::StringRef bitcode = sealed.drop_front(seal_bytes);
    const auto digest = llvm::SHA256::hash(bytes_of(bitcode));
    if (std::memcmp(digest.data(), sealed.data() + seal_magic.size(), digest.size()) != 0) {
        return damaged(unit, "bytes that differ from their digest");
    }
    unit.context.setDiagnosticHandler(std::make_unique<Diagnostics>(&unit.complaint));
    auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bitcode, unit.request->kernel), unit.context);
    if (!module) return damaged(unit, llvm::toString(module.takeError()));
    unit.module = std::move(*module);
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    if (llvm::verifyModule(*unit.module, &stream)) return damaged(unit, problem);
    const char* triple = unit.target->is_amd() ? "amdgcn-amd-amdhsa" : "nvptx64-nvidia-cuda";
    if (unit.module->getTargetTriple() != triple) {
        return refuse(unit.error, LOOM_INVALID_ARGUMENT, kernel_name(unit) + " for " + unit.request->target,
                      std::string("bitcode for ") + triple, unit.module->getTargetTriple());
    }
    unit.kernel = unit.module->getFunction(unit.request->kernel);
    if (unit.kernel == nullptr || unit.kernel->isDeclaration()) {
        return refuse(unit.error, LOOM_NOT_FOUND, kernel_name(unit), "its code in the bitcode", "none");
    }
    return LOOM_OK;
}

loom_result substitute(Unit& unit) {
    if (const loom_result result = fix_globals(unit); result != LOOM_OK) return result;
    for (llvm::Function& function : *unit.module) {
        function.removeFnAttr("target-cpu");
        function.removeFnAttr("target-features");
        if (function.isDeclaration()) continue;
        function.addFnAttr("target-cpu", llvm::StringRef(unit.target->name));
        if (!unit.target->features.empty())
            function.addFnAttr("target-features", llvm::StringRef(unit.target->features));
    }
    if (unit.target->is_amd()) {
        describe_amd_kernel(unit);
    } else {
        describe_nvidia_kernel(unit);
    }
    unit.module->setTargetTriple(unit.machine->getTargetTriple().str());
    unit.module->setDataLayout(unit.machine->createDataLayout());
    return LOOM_OK;
}

}  // namespace onebit::loom
