#include <llvm/Support/raw_ostream.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "hrx/loom/compiler/guard.h"
#include "hrx/loom/compiler/link.h"
#include "hrx/loom/compiler/unit.h"

namespace onebit::loom {
namespace {

uint64_t thread_nanoseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// Adds the time since the last call to a field.
class Clock {
public:
    void lap(uint64_t* field) {
        const uint64_t now = thread_nanoseconds();
        *field = now - last_;
        last_ = now;
    }

private:
    uint64_t last_ = thread_nanoseconds();
};

loom_result check(const loom_request& request, loom_error* error) {
    const auto wrong = [&](const char* subject, const char* expected, const std::string& found) {
        return refuse(error, LOOM_INVALID_ARGUMENT, subject, expected, found);
    };
    if (request.bitcode == nullptr || request.bitcode_bytes == 0) return wrong("bitcode", "a sealed module", "none");
    if (request.kernel == nullptr || *request.kernel == 0) return wrong("kernel", "a name", "none");
    if (request.target == nullptr) return wrong("target", "a name", "none");
    if (request.workgroup < 1 || request.workgroup > 1024) {
        return wrong("workgroup", "1 to 1024 work-items", std::to_string(request.workgroup));
    }
    if (request.constant_count != 0 && request.constants == nullptr) return wrong("constants", "an array", "none");
    for (uint32_t i = 0; i < request.constant_count; i++) {
        if (request.constants[i].name == nullptr) return wrong("constants", "names", "a null name");
    }
    if (request.output > LOOM_LLVM) return wrong("output", "a loom_output", std::to_string(request.output));
    return LOOM_OK;
}

loom_result run_steps(Unit& unit, std::vector<char>* output, loom_times* times) {
    Clock clock;
    loom_result result = read_module(unit);
    clock.lap(&times->parse);
    if (result != LOOM_OK) return result;
    result = substitute(unit);
    clock.lap(&times->substitute);
    if (result != LOOM_OK) return result;
    optimise(unit);
    clock.lap(&times->optimise);
    if (unit.request->output == LOOM_LLVM) {
        std::string text;
        llvm::raw_string_ostream stream(text);
        unit.module->print(stream, nullptr);
        output->assign(text.begin(), text.end());
        return LOOM_OK;
    }
    std::vector<char> object;
    result = generate(unit, &object);
    clock.lap(&times->generate);
    if (result != LOOM_OK) return result;
    if (unit.target->is_amd() && unit.request->output == LOOM_IMAGE) {
        const std::string problem = link_hsaco({object.data(), object.size()}, output);
        if (!problem.empty()) {
            return refuse(unit.error, LOOM_FAILED, std::string("kernel ") + unit.request->kernel,
                          "code and constant data of its own", problem);
        }
    } else {
        *output = std::move(object);
    }
    clock.lap(&times->link);
    return LOOM_OK;
}

// What a compilation owns; left behind when LLVM gives up in the middle of it.
struct Work {
    Unit unit;
    std::vector<char> output;
    std::unique_ptr<llvm::TargetMachine> machine;
};

loom_result compile(const loom_request& request, const Target& target, loom_image* image, loom_error* error) {
    Work* work = nullptr;
    loom_result result = LOOM_OK;
    const Fatal fatal = run_guarded([&] {
        work = new Work;
        work->machine = take_machine(target);
        if (!work->machine) {
            result = refuse(error, LOOM_UNSUPPORTED, request.target, "a target that LLVM knows", "none");
            return;
        }
        work->unit.request = &request;
        work->unit.target = &target;
        work->unit.error = error;
        work->unit.machine = work->machine.get();
        result = run_steps(work->unit, &work->output, &image->times);
    });
    if (fatal.happened) {
        const std::string kernel = std::string("kernel ") + request.kernel + " for " + request.target;
        if (fatal.out_of_memory) return refuse(error, LOOM_OUT_OF_MEMORY, kernel, "memory to compile it", fatal.reason);
        return refuse(error, LOOM_FAILED, kernel, "code that LLVM can compile", fatal.reason);
    }
    if (result == LOOM_OK) {
        image->size = work->output.size();
        image->data = std::malloc(image->size);
        if (image->data == nullptr) {
            result = refuse(error, LOOM_OUT_OF_MEMORY, "image", std::to_string(image->size) + " bytes", "no memory");
        } else {
            std::memcpy(image->data, work->output.data(), image->size);
        }
    }
    auto machine = std::move(work->machine);
    delete work;
    if (machine) give_back_machine(target, std::move(machine));
    return result;
}

}  // namespace
}  // namespace onebit::loom

using namespace onebit::loom;

uint32_t loom_version(void) { return LOOM_VERSION; }
const char* loom_compiler(void) { return ONEBIT_LOOM_COMPILER; }

const char* loom_target(uint32_t index) { return index < targets.size() ? targets[index].name.data() : nullptr; }

loom_result loom_compile(const loom_request* request, loom_image* image, loom_error* error) {
    *image = {};
    *error = {};
    try {
        if (const loom_result result = check(*request, error); result != LOOM_OK) return result;
        const Target* target = find_target(request->target);
        if (target == nullptr) {
            std::string known;
            for (const Target& each : targets) known += (known.empty() ? "" : ", ") + std::string(each.name);
            return refuse(error, LOOM_UNSUPPORTED, "target", known, request->target);
        }
        return compile(*request, *target, image, error);
    } catch (const std::exception&) {
        return refuse(error, LOOM_OUT_OF_MEMORY, "loom_compile", "memory", "too little");
    }
}

void loom_image_free(loom_image* image) {
    if (image == nullptr) return;
    std::free(image->data);
    *image = {};
}
