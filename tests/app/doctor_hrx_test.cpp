// If this fails, 1bit doctor does not say which library a driver of hrx tried, or which call of it failed. Covers SD02.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/doctor/checks.h"

namespace onebit {
namespace {

using testing::HasSubstr;

Findings hrx_findings(std::vector<HrxAttempt> attempts, const std::vector<PciGpu>& gpus) {
    Machine machine;
    machine.hrx_attempts = [attempts]() -> Result<std::vector<HrxAttempt>> { return attempts; };
    Findings findings;
    check_hrx(machine, gpus, findings);
    return findings;
}

const PciGpu amd{{0, 0xC4, 0, 0}, GpuVendor::amd, "amdgpu"};
const PciGpu nvidia{{0, 1, 0, 0}, GpuVendor::nvidia, "nvidia"};

TEST(DoctorHrxTest, ADriverThatStartedIsInOrder) {
    const Findings findings =
        hrx_findings({{"amdgpu", "ROCm", "/opt/rocm-6/lib/libhsa-runtime64.so.1", "hsa_init", "0x1008", false},
                      {"amdgpu", "system", "libhsa-runtime64.so.1", "", "HSA 1.1, 1 GPU", true}},
                     {amd});
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].check, "hrx amdgpu");
    EXPECT_EQ(findings[0].status, FindingStatus::ok);
    EXPECT_THAT(findings[0].found, HasSubstr("/opt/rocm-6/lib/libhsa-runtime64.so.1 (ROCm): hsa_init failed: 0x1008"));
    EXPECT_THAT(findings[0].found, HasSubstr("libhsa-runtime64.so.1 (system): HSA 1.1, 1 GPU"));
}

TEST(DoctorHrxTest, AGpuWithoutItsLibraryIsAWarningWithTheVariable) {
    const Findings findings = hrx_findings(
        {{"amdgpu", "system", "libhsa-runtime64.so.1", "hsa_iterate_agents", "HSA 1.1 shows no GPU", false},
         {"cuda", "system", "libcuda.so.1", "dlopen", "cannot open shared object file", false}},
        {amd, nvidia});
    ASSERT_EQ(findings.size(), 2u);
    EXPECT_EQ(findings[0].status, FindingStatus::warning);
    EXPECT_THAT(findings[0].found, HasSubstr("hsa_iterate_agents failed"));
    EXPECT_THAT(findings[0].remedy, HasSubstr("ONEBIT_HRX_LIBHSA="));
    EXPECT_EQ(findings[1].check, "hrx cuda");
    EXPECT_EQ(findings[1].status, FindingStatus::warning);
    EXPECT_THAT(findings[1].remedy, HasSubstr("ONEBIT_HRX_LIBCUDA="));
}

TEST(DoctorHrxTest, WithoutAGpuNothingIsMissed) {
    PciGpu reserved = amd;
    reserved.driver = "vfio-pci";
    const Findings findings =
        hrx_findings({{"amdgpu", "system", "libhsa-runtime64.so.1", "dlopen", "no such file", false}}, {reserved});
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].status, FindingStatus::ok);
    EXPECT_THAT(findings[0].found, HasSubstr("no AMD GPU"));
    EXPECT_THAT(findings[0].found, HasSubstr("dlopen failed"));
}

// Who names a library wants it: that it does not start is no matter of the GPUs that are here.
TEST(DoctorHrxTest, ANamedLibraryThatDoesNotStartIsAWarning) {
    const Findings findings =
        hrx_findings({{"amdgpu", "ONEBIT_HRX_LIBHSA", "/mine.so", "dlopen", "cut short", false},
                      {"cuda", "ONEBIT_HRX_LIBCUDA", "/other.so", "dlopen", "not a regular file", false}},
                     {});
    ASSERT_EQ(findings.size(), 2u);
    for (const Finding& finding : findings) EXPECT_EQ(finding.status, FindingStatus::warning) << finding.check;
    EXPECT_THAT(findings[0].found, HasSubstr("/mine.so (ONEBIT_HRX_LIBHSA): dlopen failed: cut short"));
}

TEST(DoctorHrxTest, AProbeThatDiesIsAWarning) {
    Machine machine;
    machine.hrx_attempts = []() -> Result<std::vector<HrxAttempt>> {
        return Error{ErrorCode::unavailable, "drivers of hrx", "a list", "the probe ended by signal 11", ""};
    };
    Findings findings;
    check_hrx(machine, {}, findings);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].status, FindingStatus::warning);
    EXPECT_THAT(findings[0].found, HasSubstr("signal 11"));
    machine.hrx_attempts = nullptr;
    findings.clear();
    check_hrx(machine, {}, findings);
    EXPECT_TRUE(findings.empty());
}

}  // namespace
}  // namespace onebit
