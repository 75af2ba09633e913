// Drivers of hrx: which library was tried, and the call that failed.
#include <algorithm>

#include "app/doctor/checks.h"

namespace onebit {
namespace {

std::string attempt_text(const HrxAttempt& attempt) {
    const std::string library = attempt.library + " (" + attempt.origin + ")";
    return attempt.started ? library + ": " + attempt.detail
                           : library + ": " + attempt.call + " failed: " + attempt.detail;
}

}  // namespace

void check_hrx(const Machine& machine, const std::vector<PciGpu>& gpus, Findings& findings) {
    if (!machine.hrx_attempts) return;
    const auto attempts = machine.hrx_attempts();
    if (!attempts.ok()) {
        findings.push_back({"hrx", FindingStatus::warning, attempts.error().message(),
                            "without it, AMD GPUs are used through Vulkan and NVIDIA's through CUDA or Vulkan"});
        return;
    }
    struct Use {
        const char *driver, *kernel_driver, *vendor, *remedy;
    };
    for (const Use& use :
         {Use{"amdgpu", "amdgpu", "AMD",
              "install ROCm's runtime, or name its library: ONEBIT_HRX_LIBHSA=/path/to/libhsa-runtime64.so.1"},
          Use{"cuda", "nvidia", "NVIDIA",
              "install NVIDIA's driver, or name its library: ONEBIT_HRX_LIBCUDA=/path/to/libcuda.so.1"}}) {
        bool started = false, named = false;
        std::string told;
        for (const HrxAttempt& attempt : *attempts) {
            if (attempt.driver != use.driver) continue;
            started |= attempt.started;
            // who names a library wants it, whatever GPUs are here
            named |= attempt.origin.starts_with("ONEBIT_HRX_");
            told += (told.empty() ? "" : "; ") + attempt_text(attempt);
        }
        if (told.empty()) continue;
        const bool wanted =
            std::ranges::any_of(gpus, [&use](const PciGpu& gpu) { return gpu.driver == use.kernel_driver; });
        const std::string check = std::string("hrx ") + use.driver;
        if (started || (!wanted && !named)) {
            const std::string unused = std::string("not needed, no ") + use.vendor + " GPU with its driver here; ";
            findings.push_back({check, FindingStatus::ok, (started ? "" : unused) + told, ""});
        } else {
            findings.push_back({check, FindingStatus::warning, told, use.remedy});
        }
    }
}

}  // namespace onebit
