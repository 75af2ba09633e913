// The passes are named one by one rather than through PassBuilder, which would link all that LLVM has.
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/CycleAnalysis.h>
#include <llvm/Analysis/DominanceFrontier.h>
#include <llvm/Analysis/LoopAccessAnalysis.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ProfileSummaryInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/TypeBasedAliasAnalysis.h>
#include <llvm/Analysis/UniformityAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "hrx/loom/compiler/unit.h"

namespace onebit::loom {
namespace {

struct Managers {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::ModuleAnalysisManager modules;

    explicit Managers(llvm::TargetMachine* machine) {
        modules.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
        modules.registerPass([] { return llvm::ProfileSummaryAnalysis(); });
        modules.registerPass([this] { return llvm::FunctionAnalysisManagerModuleProxy(functions); });
        loops.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
        loops.registerPass([this] { return llvm::FunctionAnalysisManagerLoopProxy(functions); });
        functions.registerPass([] {
            llvm::AAManager manager;
            manager.registerFunctionAnalysis<llvm::BasicAA>();
            manager.registerFunctionAnalysis<llvm::ScopedNoAliasAA>();
            manager.registerFunctionAnalysis<llvm::TypeBasedAA>();
            return manager;
        });
        functions.registerPass([this] { return llvm::ModuleAnalysisManagerFunctionProxy(modules); });
        functions.registerPass([this] { return llvm::LoopAnalysisManagerFunctionProxy(loops); });
        functions.registerPass([machine] { return machine->getTargetIRAnalysis(); });
        add<llvm::BasicAA, llvm::ScopedNoAliasAA, llvm::TypeBasedAA, llvm::AssumptionAnalysis,
            llvm::BlockFrequencyAnalysis, llvm::BranchProbabilityAnalysis, llvm::DominatorTreeAnalysis,
            llvm::PostDominatorTreeAnalysis, llvm::LoopAnalysis, llvm::MemorySSAAnalysis,
            llvm::OptimizationRemarkEmitterAnalysis, llvm::ScalarEvolutionAnalysis, llvm::TargetLibraryAnalysis,
            llvm::PassInstrumentationAnalysis, llvm::CycleAnalysis, llvm::UniformityInfoAnalysis>();
    }
    // The managers point at each other.
    Managers(const Managers&) = delete;
    Managers& operator=(const Managers&) = delete;

private:
    template <typename... Analyses>
    void add() {
        (functions.registerPass([] { return Analyses(); }), ...);
    }
};

}  // namespace

void optimise(Unit& unit) {
    Managers managers(unit.machine);
    llvm::FunctionPassManager passes;
    const auto combine = [&] {
        passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false)));
    };
    // the constants first: most of a kernel's branches end here
    combine();
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    {
        llvm::LoopPassManager loops;
        loops.addPass(llvm::LoopRotatePass());
        loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), true));
    }
    passes.addPass(llvm::SimplifyCFGPass());
    combine();
    {
        llvm::LoopPassManager loops;
        loops.addPass(llvm::IndVarSimplifyPass());
        loops.addPass(llvm::LoopFullUnrollPass(2));
        passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops)));
    }
    // unrolled loops index arrays by constants: those become registers
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass(true));
    combine();
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2)));
    passes.addPass(llvm::EarlyCSEPass(true));
    combine();
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::ADCEPass());
    llvm::ModulePassManager all;
    all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    all.addPass(llvm::GlobalDCEPass());
    all.run(*unit.module, managers.modules);
}

}  // namespace onebit::loom
