// If this fails, 1bit doctor does not see what keeps a GPU from being used, or names the wrong command to mend it.
#include "app/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "app/doctor/checks.h"
#include "app/doctor/probe.h"
#include "tests/engine/temp_tree.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr uint64_t GiB = 1ull << 30;
using Status = FindingStatus;

testing::Matcher<Finding> finding(const std::string& check, Status status, const std::string& found,
                                  const std::string& remedy = "") {
    return AllOf(Field(&Finding::check, HasSubstr(check)), Field(&Finding::status, status),
                 Field(&Finding::found, HasSubstr(found)), Field(&Finding::remedy, HasSubstr(remedy)));
}

class DoctorTest : public testing::Test {
protected:
    DoctorTest() {
        machine_.root = tree_.path();
        machine_.user = "friend";
        machine_.home = "/home/friend";
        machine_.kernel = "6.1.0 x86_64";
        machine_.memory_lock_limit = 8 << 20;
        machine_.open_files_limit = 4096;
        machine_.build = {"0.1.0", "v0.5.0", "gcc", true, false, true};
        machine_.may_open = [](const std::string&) { return true; };
        machine_.disk_free = [](const std::filesystem::path&) { return std::optional<uint64_t>(100 * GiB); };
        machine_.cache_folder = [this]() -> Result<std::filesystem::path> {
            return std::filesystem::path(tree_.path("cache"));
        };
        machine_.models_folder = [this]() -> Result<std::filesystem::path> {
            return std::filesystem::path(tree_.path("models"));
        };
        machine_.load_library = [](const std::string&) { return Result<void>(); };
        machine_.vulkan_devices = [this] { return Result<std::vector<VulkanDevice>>(vulkan_); };
        tree_.write("proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 104857600 kB\n");
        tree_.write("proc/cpuinfo",
                    "processor : 0\nmodel name : Some CPU\nflags : fpu avx2 fma f16c\n\nprocessor : 1\n");
        tree_.write("cache/.keep", "");
        chmod(tree_.path("cache").c_str(), 0700);
    }

    void add_gpu(const std::string& address, const std::string& vendor, const std::string& driver) {
        const std::string folder = "sys/bus/pci/devices/" + address + "/";
        tree_.write(folder + "class", "0x030000\n");
        tree_.write(folder + "vendor", vendor + "\n");
        if (driver.empty()) return;
        std::filesystem::create_symlink("../../../bus/pci/drivers/" + driver, tree_.path(folder + "driver"));
    }
    void add_apu_memory(const std::string& address, uint64_t vram, uint64_t gtt) {
        const std::string folder = "sys/bus/pci/devices/" + address + "/mem_info_";
        tree_.write(folder + "vram_total", std::to_string(vram));
        tree_.write(folder + "gtt_total", std::to_string(gtt));
        tree_.write(folder + "vram_vendor", "unknown\n");
    }
    void see_by_vulkan(const std::string& address) {
        VulkanDevice device;
        device.name = "GPU";
        device.driver = "radv Mesa 25.0.7";
        device.pci = parse_pci_address(address).value();
        vulkan_.push_back(device);
    }
    void add_manifest(const std::string& path, const std::string& library) {
        tree_.write(path, R"({"file_format_version": "1.0.0", "ICD": {"library_path": ")" + library +
                              R"(", "api_version": "1.3"}})");
    }
    Findings run() { return examine(machine_); }

    TempTree tree_;
    Machine machine_;
    std::vector<VulkanDevice> vulkan_;
};

TEST_F(DoctorTest, AMachineInOrderHasNoProblem) {
    add_gpu("0000:c4:00.0", "0x1002", "amdgpu");
    add_manifest("usr/share/vulkan/icd.d/radeon_icd.json", "libvulkan_radeon.so");
    tree_.write("dev/dri/renderD128", "");
    tree_.write("dev/kfd", "");
    see_by_vulkan("0000:c4:00.0");
    const Findings findings = run();
    EXPECT_FALSE(any_problem(findings)) << findings_to_text(findings);
    EXPECT_THAT(findings, Contains(finding("gpu", Status::ok, "AMD 0000:c4:00.0, kernel driver amdgpu")));
    EXPECT_THAT(findings, Contains(finding("vulkan device", Status::ok, "radv Mesa 25.0.7")));
    EXPECT_THAT(findings, Contains(finding("processor", Status::ok, "Some CPU, 2 threads, avx2 fma f16c")));
}

TEST_F(DoctorTest, AnEmptyMachineIsNoCrash) {
    const TempTree empty;
    machine_.root = empty.path();
    const Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("memory", Status::warning, "cannot be read")));
    EXPECT_THAT(findings, Contains(finding("vulkan drivers", Status::warning, "no manifest", "mesa-vulkan-drivers")));
    EXPECT_THAT(findings, Contains(finding("gpu", Status::ok, "everything runs on the CPU")));
}

TEST_F(DoctorTest, MissingGroupNamesFileGroupAndCommand) {  // BD07
    add_gpu("0000:c4:00.0", "0x1002", "amdgpu");
    tree_.write("dev/dri/renderD128", "");
    tree_.write("dev/kfd", "");
    const std::string gid = std::to_string(getgid());
    tree_.write("etc/group", "root:x:99999:\nrendering:x:" + gid + ":\n");
    machine_.may_open = [](const std::string& path) { return path.find("/dev/") == std::string::npos; };
    Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("permission /dev/dri/renderD128", Status::problem,
                                           "no permission on renderD128 (group rendering, gid " + gid + ")",
                                           "sudo usermod -aG rendering friend")));
    EXPECT_THAT(findings, Contains(finding("permission /dev/kfd", Status::warning, "no permission on kfd")));

    tree_.write("etc/group", "");
    findings = run();
    EXPECT_THAT(findings, Contains(finding("renderD128", Status::problem, "gid " + gid, "groupadd -g " + gid)));

    tree_.write(".dockerenv", "");
    findings = run();
    EXPECT_THAT(findings, Contains(finding("renderD128", Status::problem, "gid " + gid, "--group-add " + gid)));
}

TEST_F(DoctorTest, ContainerWithoutDeviceFiles) {  // BD07
    add_gpu("0000:c4:00.0", "0x1002", "amdgpu");
    tree_.write("run/.containerenv", "");
    const Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("/dev/dri", Status::problem, "no /dev/dri/renderD*", "--device /dev/dri")));
    EXPECT_THAT(findings, Contains(finding("/dev/kfd", Status::warning, "only Vulkan", "--device /dev/kfd")));
}

TEST_F(DoctorTest, NvidiaWithoutItsDeviceFiles) {
    add_gpu("0000:1b:00.0", "0x10de", "nvidia");
    tree_.write("dev/nvidiactl", "");
    EXPECT_THAT(run(), Contains(finding("/dev/nvidia", Status::problem, "no /dev/nvidia0", "nvidia-modprobe")));
    tree_.write("dev/nvidia0", "");
    EXPECT_THAT(run(), Contains(finding("/dev/nvidia0", Status::ok, "may be used")));
}

TEST_F(DoctorTest, GpuWithoutDriverOrWithAnother) {
    add_gpu("0000:01:00.0", "0x10de", "");
    add_gpu("0000:02:00.0", "0x10de", "nouveau");
    add_gpu("0000:03:00.0", "0x1002", "vfio-pci");
    add_gpu("0000:04:00.0", "0x1a03", "ast");
    const Findings findings = run();
    EXPECT_THAT(findings,
                Contains(finding("gpu", Status::problem, "NVIDIA 0000:01:00.0 has no kernel driver", "nvidia-driver")));
    EXPECT_THAT(findings, Contains(finding("gpu", Status::warning, "nouveau")));
    EXPECT_THAT(findings, Contains(finding("gpu", Status::warning, "virtual machine")));
    EXPECT_THAT(findings, Not(Contains(Field(&Finding::found, HasSubstr("0000:04:00.0")))))
        << "a board's own display chip";
}

TEST_F(DoctorTest, GttOfAnApuAndTheExactLimit) {  // DEV07
    add_gpu("0000:c4:00.0", "0x1002", "amdgpu");
    add_apu_memory("0000:c4:00.0", 512ull << 20, 62 * GiB);
    tree_.write("sys/module/ttm/parameters/pages_limit", "16252928\n");
    machine_.wanted_gtt_bytes = 105 * GiB;
    // 105 GiB in pages of 4 KiB
    if (sysconf(_SC_PAGESIZE) == 4096) {
        EXPECT_THAT(run(), Contains(finding("gtt 0000:c4:00.0", Status::warning, "62.0 GiB of the machine's 128 GiB",
                                            "ttm.pages_limit=27525120")));
    }
    EXPECT_THAT(run(), Contains(finding("gtt", Status::warning, "ttm.pages_limit is 16252928")));
    machine_.wanted_gtt_bytes = 62 * GiB;
    EXPECT_THAT(run(), Contains(finding("gtt", Status::ok, "62.0 GiB")));
    machine_.wanted_gtt_bytes = 62 * GiB + 1;
    EXPECT_THAT(run(), Contains(finding("gtt", Status::warning, "62.0 GiB", "pages_limit=")));
    machine_.wanted_gtt_bytes = 500 * GiB;
    EXPECT_THAT(run(), Contains(finding("gtt", Status::problem, "the machine has 128 GiB")));
    machine_.wanted_gtt_bytes.reset();
    EXPECT_THAT(run(), Contains(finding("gtt", Status::warning, "62.0 GiB", "for 112 GiB")));
}

TEST_F(DoctorTest, ADiscreteGpuHasNoGttAdvice) {
    add_gpu("0000:03:00.0", "0x1002", "amdgpu");
    add_apu_memory("0000:03:00.0", 24 * GiB, 62 * GiB);
    tree_.write("sys/bus/pci/devices/0000:03:00.0/mem_info_vram_vendor", "samsung\n");
    EXPECT_THAT(run(), Each(Field(&Finding::check, Not(HasSubstr("gtt")))));
    machine_.wanted_gtt_bytes = 16 * GiB;
    EXPECT_THAT(run(), Contains(finding("gtt", Status::warning, "--gtt is ignored")));
}

TEST_F(DoctorTest, GpuOnTheBusThatVulkanDoesNotSee) {
    add_gpu("0000:c4:00.0", "0x1002", "amdgpu");
    add_gpu("0000:01:00.0", "0x10de", "nvidia");
    see_by_vulkan("0000:c4:00.0");
    const Findings findings = run();
    EXPECT_THAT(findings,
                Contains(finding("vulkan devices", Status::problem, "NVIDIA 0000:01:00.0", "nvidia-vulkan-icd")));
    EXPECT_THAT(findings, Not(Contains(finding("vulkan devices", Status::problem, "AMD"))));
}

TEST_F(DoctorTest, SoftwareVulkanIsNoSubstituteForTheGpu) {  // DEV13
    add_gpu("0000:c4:00.0", "0x1002", "amdgpu");
    VulkanDevice software;
    software.name = "llvmpipe";
    software.on_cpu = true;
    vulkan_ = {software};
    const Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("vulkan devices", Status::problem, "Vulkan does not see it")));
    EXPECT_THAT(findings, Contains(finding("vulkan device", Status::ok, "software Vulkan")));
}

TEST_F(DoctorTest, ManifestsThatDoNotLoad) {
    add_manifest("usr/share/vulkan/icd.d/good.json", "libgood.so");
    add_manifest("etc/vulkan/icd.d/bad.json", "./libbad.so");
    add_manifest("usr/share/vulkan/icd.d/old.i686.json", "/usr/lib32/libold.so");
    tree_.write("usr/share/vulkan/icd.d/broken.json", "{\"ICD\": 5");
    tree_.write("usr/share/vulkan/icd.d/README", "no manifest");
    machine_.load_library = [](const std::string& library) -> Result<void> {
        if (library.find("libbad") != std::string::npos)
            return Error{ErrorCode::unavailable, library, "", "libLLVM.so: no such file", ""};
        if (library.find("lib32") != std::string::npos)
            return Error{ErrorCode::unavailable, library, "", "wrong ELF class: ELFCLASS32", ""};
        return {};
    };
    const Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("good.json", Status::ok, "libgood.so loads")));
    EXPECT_THAT(findings, Contains(finding("bad.json", Status::problem, "libLLVM.so: no such file", "dpkg -S")));
    EXPECT_THAT(findings, Contains(finding("bad.json", Status::problem, "etc/vulkan/icd.d/libbad.so")));
    EXPECT_THAT(findings, Contains(finding("old.i686.json", Status::ok, "another architecture")));
    EXPECT_THAT(findings, Contains(finding("broken.json", Status::problem, "not a manifest")));
}

TEST_F(DoctorTest, VariablesThatNameDriversWin) {
    add_manifest("usr/share/vulkan/icd.d/usual.json", "libusual.so");
    add_manifest("mine/one.json", "libone.so");
    add_manifest("mine/two.json", "libtwo.so");
    machine_.environment["VK_ICD_FILENAMES"] = "/no/such.json:" + tree_.path("mine/one.json");
    Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("such.json", Status::problem, "no such file", "unset VK_ICD_FILENAMES")));
    EXPECT_THAT(findings, Contains(finding("one.json", Status::ok, "named by VK_ICD_FILENAMES")));
    EXPECT_THAT(findings, Each(Field(&Finding::check, Not(HasSubstr("usual.json")))));
    machine_.environment["VK_DRIVER_FILES"] = tree_.path("mine");
    findings = run();
    EXPECT_THAT(findings, Contains(finding("two.json", Status::ok, "named by VK_DRIVER_FILES")));
    EXPECT_THAT(findings, Each(Field(&Finding::check, Not(HasSubstr("such.json")))));
}

TEST_F(DoctorTest, LoaderMissing) {
    machine_.load_library = [](const std::string& library) -> Result<void> {
        return Error{ErrorCode::unavailable, library, "", "cannot open shared object file", ""};
    };
    EXPECT_THAT(run(),
                Contains(finding("vulkan loader", Status::problem, "cannot open shared object file", "libvulkan1")));
}

TEST_F(DoctorTest, ShadersOfAnOldCompilerAreReported) {
    machine_.build.cooperative_matrices = false;
    EXPECT_THAT(run(),
                Contains(finding("shaders", Status::warning, "does not know cooperative matrices", "make build")));
    machine_.build.vulkan = false;
    EXPECT_THAT(run(), Contains(finding("vulkan", Status::ok, "built without Vulkan")));
}

TEST_F(DoctorTest, EngineThatCrashesInADriverIsAProblemWithItsReason) {  // DEV18
    machine_.engine_devices = []() -> Result<std::string> {
        return Error{ErrorCode::unavailable, "the engine's devices", "", "ended by signal 11", ""};
    };
    EXPECT_THAT(run(),
                Contains(finding("engine devices", Status::problem, "ended by signal 11", "GGML_DISABLE_VULKAN")));
}

TEST_F(DoctorTest, GpuThatTheEngineLeavesOutIsNamedWithTheVariable) {  // DEV18
    see_by_vulkan("0000:c4:00.0");
    machine_.environment["GGML_VK_VISIBLE_DEVICES"] = "1";
    machine_.engine_devices = [] { return Result<std::string>("CPU (Some CPU)"); };
    EXPECT_THAT(run(),
                Contains(finding("engine devices", Status::warning, "Vulkan sees GPU, but the engine leaves it out",
                                 "unset GGML_VK_VISIBLE_DEVICES")));
    machine_.engine_devices = [] { return Result<std::string>("Vulkan0 (GPU, 0000:c4:00.0)"); };
    EXPECT_THAT(run(), Not(Contains(finding("engine devices", Status::warning, ""))));
}

TEST_F(DoctorTest, SoftwareVulkanThatTheEngineHidesIsToldWithTheCommandThatShowsIt) {
    const auto hidden = [](const char* part) { return finding("engine devices", Status::ok, part); };
    machine_.engine_devices = [] { return Result<std::string>("CPU (Some CPU)"); };
    EXPECT_THAT(run(), Not(Contains(hidden("GGML_VK_VISIBLE_DEVICES"))));
    VulkanDevice software;
    software.name = "llvmpipe (LLVM 15.0.6, 256 bits)";
    software.on_cpu = true;
    vulkan_ = {software};
    EXPECT_THAT(run(), Contains(hidden("leaves out llvmpipe (LLVM 15.0.6, 256 bits)")));
    EXPECT_THAT(run(), Contains(hidden(": GGML_VK_VISIBLE_DEVICES=0 1bit serve --device Vulkan0")));
    EXPECT_THAT(run(), Not(Contains(finding("engine devices", Status::warning, "")))) << "it is as it should be";
    machine_.environment["GGML_DISABLE_VULKAN"] = "1";
    EXPECT_THAT(run(), Contains(hidden(": env -u GGML_DISABLE_VULKAN GGML_VK_VISIBLE_DEVICES=0 1bit ")));
    machine_.environment.clear();
    // its place among all that Vulkan lists
    see_by_vulkan("0000:c4:00.0");
    std::swap(vulkan_.front(), vulkan_.back());
    machine_.engine_devices = [] { return Result<std::string>("Vulkan0 (GPU, 0000:c4:00.0)"); };
    EXPECT_THAT(run(), Contains(hidden(": GGML_VK_VISIBLE_DEVICES=1 1bit ")));
    machine_.engine_devices = [] {
        return Result<std::string>("Vulkan0 (GPU, 0000:c4:00.0), Vulkan1 (CPU (software Vulkan))");
    };
    EXPECT_THAT(run(), Not(Contains(hidden("leaves out"))));
}

TEST_F(DoctorTest, NoDriverStartsThoughVariablesNameOne) {
    machine_.environment["VK_ICD_FILENAMES"] = "/no/such.json";
    machine_.vulkan_devices = []() -> Result<std::vector<VulkanDevice>> {
        return Error{ErrorCode::unavailable, "Vulkan", "a list", "vkCreateInstance gave -9", ""};
    };
    EXPECT_THAT(run(), Contains(finding("vulkan devices", Status::warning, "gave -9", "unset VK_ICD_FILENAMES")));
}

TEST_F(DoctorTest, DiskAndCacheFolder) {
    machine_.disk_free = [](const std::filesystem::path&) { return std::optional<uint64_t>(1 << 20); };
    Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("cache disk", Status::problem, "1.0 MiB free", "ONEBIT_CACHE=DIR")));
    EXPECT_THAT(findings, Contains(finding("models disk", Status::warning, "1.0 MiB free", "ONEBIT_MODELS=DIR")));
    chmod(tree_.path("cache").c_str(), 0777);
    EXPECT_THAT(run(), Contains(finding("cache folder", Status::problem, "written by other users", "chmod 700")));
    chmod(tree_.path("cache").c_str(), 0700);
    machine_.may_open = [](const std::string&) { return false; };
    EXPECT_THAT(run(), Contains(finding("cache folder", Status::problem, "may not be written", "chown")));
    machine_.cache_folder = []() -> Result<std::filesystem::path> {
        return Error{ErrorCode::conflict, "/c", "a folder of yours", "one of root", "sudo chown"};
    };
    EXPECT_THAT(run(), Contains(finding("cache folder", Status::problem, "one of root", "sudo chown")));
}

TEST_F(DoctorTest, LimitsAndControlGroup) {
    machine_.open_files_limit = 1023;
    tree_.write("proc/self/cgroup", "0::/\n");
    tree_.write("sys/fs/cgroup/memory.max", "1073741824\n");
    tree_.write("sys/fs/cgroup/memory.current", "0\n");
    const Findings findings = run();
    EXPECT_THAT(findings, Contains(finding("open files", Status::warning, "1023", "ulimit -n 4096")));
    EXPECT_THAT(findings, Contains(finding("memory", Status::warning,
                                           "1.0 GiB of 1.0 GiB available, limited by a control group")));
}

TEST_F(DoctorTest, AnotherProgramOnThePort) {
    const std::string head =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
    tree_.write(
        "proc/net/tcp",
        head + "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1\n");
    EXPECT_THAT(run(), Contains(finding("port 8080", Status::warning, "another user", "--port 8081")));
    std::filesystem::create_directories(tree_.path("proc/77/fd"));
    tree_.write("proc/77/comm", "ollama\n");
    std::filesystem::create_symlink("socket:[4242]", tree_.path("proc/77/fd/3"));
    EXPECT_THAT(run(), Contains(finding("port 8080", Status::warning, "ollama (process 77)", "kill 77")));
    tree_.write("proc/77/comm", "1bit\n");
    EXPECT_THAT(run(), Contains(finding("port 8080", Status::ok, "1bit listens")));
    tree_.write("proc/net/tcp",
                head + "   0: 0100007F:1F91 00000000:0000 0A 0 00:0 0 0 0 4242 1\nnonsense\n   1: x:1F90 y 01\n");
    EXPECT_THAT(run(), Contains(finding("port 8080", Status::ok, "free")));
}

TEST_F(DoctorTest, ReportIsOneTextWithoutNameAndHome) {  // BD13
    machine_.environment["VK_ICD_FILENAMES"] = "/home/friend/icd.json";
    tree_.write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
    const std::string report = findings_to_report(machine_, run());
    EXPECT_THAT(report, HasSubstr("1bit 0.1.0, llama.cpp v0.5.0"));
    EXPECT_THAT(report, HasSubstr("kernel 6.1.0"));
    EXPECT_THAT(report, HasSubstr("Debian GNU/Linux 12"));
    EXPECT_THAT(report, HasSubstr("VK_ICD_FILENAMES=~/icd.json"));
    EXPECT_EQ(report.find("friend"), std::string::npos);
}

TEST_F(DoctorTest, JsonNamesEveryField) {
    machine_.environment["VK_ICD_FILENAMES"] = "/no/\xff.json";
    const auto json = nlohmann::json::parse(findings_to_json(run()));
    EXPECT_GE(json["problems"], 1);
    for (const auto& one : json["findings"]) {
        EXPECT_THAT(one["status"], testing::AnyOf("ok", "warning", "problem"));
        EXPECT_TRUE(one.contains("check") && one.contains("found") && one.contains("remedy"));
        EXPECT_TRUE(one["status"] == "ok" || one["remedy"] != "") << one.dump();
    }
}

constexpr std::chrono::seconds generous{60};

TEST(Probe, OutputAndExitCode) {
    const auto result = run_probe(
        [](std::string* output) {
            *output = std::string(300000, 'x');
            return 0;
        },
        generous);
    EXPECT_TRUE(result.ok());
    EXPECT_THAT(result.output, SizeIs(300000));
    EXPECT_EQ(result.reason(), "");
    const auto failed = run_probe(
        [](std::string*) {
            fputs("driver says no\n", stderr);
            return 3;
        },
        generous);
    EXPECT_EQ(failed.reason(), "ended with exit code 3; its last words: driver says no");
}

TEST(Probe, ACrashIsToldWithItsSignal) {  // DEV18
    const auto result = run_probe(
        [](std::string*) -> int {
            fputs("boom\n", stderr);
            fflush(stderr);
            raise(SIGKILL);
            return 0;
        },
        generous);
    EXPECT_EQ(result.ending, ProbeResult::Ending::signalled);
    EXPECT_THAT(result.reason(), HasSubstr("ended by signal 9 (Killed); its last words: boom"));
}

TEST(Probe, AHangIsEnded) {  // BD14
    const auto result = run_probe(
        [](std::string*) -> int {
            for (;;) pause();
        },
        std::chrono::milliseconds(200));
    EXPECT_EQ(result.ending, ProbeResult::Ending::timed_out);
    EXPECT_THAT(result.reason(), HasSubstr("did not come back in time"));
}

TEST(Probe, AHangAfterClosingItsStreamsIsEnded) {
    const auto result = run_probe(
        [](std::string*) -> int {
            for (int fd = 0; fd < 256; fd++) close(fd);
            for (;;) pause();
        },
        std::chrono::milliseconds(200));
    EXPECT_EQ(result.ending, ProbeResult::Ending::timed_out);
}

TEST(Probe, AGrandchildThatKeepsTheStreamsDoesNotHoldItUp) {
    const auto result = run_probe(
        [](std::string* output) {
            if (fork() == 0) {
                alarm(30);  // long after the test, and still not for ever
                for (;;) pause();
            }
            *output = "done";
            return 0;
        },
        generous);
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.output, "done");
}

TEST(Probe, AnExceptionIsAFailure) {
    const auto result = run_probe([](std::string*) -> int { throw std::runtime_error("thrown"); }, generous);
    EXPECT_EQ(result.code, 125);
    EXPECT_THAT(result.reason(), HasSubstr("thrown"));
}

TEST(ThisMachine, CanBeExamined) {
    Machine machine = this_machine();
    machine.build = {"0", "0", "gcc", true, false, true};
    // a cache folder of the test's own
    const TempTree tree;
    machine.cache_folder = [&tree]() -> Result<std::filesystem::path> { return std::filesystem::path(tree.path()); };
    const Findings findings = examine(machine);
    EXPECT_THAT(findings, Contains(Field(&Finding::check, "processor")));
    EXPECT_THAT(findings, Contains(Field(&Finding::check, "cache disk")));
}

}  // namespace
}  // namespace onebit
