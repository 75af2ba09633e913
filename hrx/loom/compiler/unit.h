// One kernel on its way from sealed bitcode to an image; the steps in the order in which they run. Each fills *error
// and returns a result other than LOOM_OK when it cannot go on. One thread at a time; no shared state between units.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "hrx/loom/loom.h"
#include "hrx/loom/targets.h"

namespace onebit::loom {

struct Unit {
    const loom_request* request = nullptr;
    const Target* target = nullptr;
    loom_error* error = nullptr;
    llvm::TargetMachine* machine = nullptr;
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    llvm::Function* kernel = nullptr;
    std::string complaint;  // of LLVM's diagnostics, the first error
};

// Fills error, cutting what does not fit.
loom_result refuse(loom_error* error, loom_result result, const std::string& subject, const std::string& expected,
                   const std::string& found);

// Compares the seal, reads the module and finds the kernel.
loom_result read_module(Unit& unit);
// Gives constants their values, and the functions the chip and the size of a group.
loom_result substitute(Unit& unit);
// Optimises the module for what is known now.
void optimise(Unit& unit);
// Code generation; for AMD an object that is still to be linked.
loom_result generate(Unit& unit, std::vector<char>* output);

// Machines are kept for the next compilation, since their tables cost more than a small kernel. Null when LLVM has no
// such target.
std::unique_ptr<llvm::TargetMachine> take_machine(const Target& target);
void give_back_machine(const Target& target, std::unique_ptr<llvm::TargetMachine> machine);

}  // namespace onebit::loom
