#include "app/doctor/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/doctor/checks.h"

namespace onebit {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string::npos; at += by.size()) {
        text.replace(at, what.size(), by);
    }
    return text;
}

size_t count(const Findings& findings, FindingStatus status) {
    return static_cast<size_t>(std::ranges::count(findings, status, &Finding::status));
}

std::string summary(const Findings& findings) {
    return std::to_string(count(findings, FindingStatus::problem)) + " problems, " +
           std::to_string(count(findings, FindingStatus::warning)) + " warnings, " +
           std::to_string(count(findings, FindingStatus::ok)) + " in order\n";
}

std::string lines_of(const Findings& findings) {
    std::string text;
    for (const Finding& finding : findings) {
        std::string status = to_string(finding.status);
        status.resize(8, ' ');
        text += status + " " + finding.check + ": " + printable(finding.found) + "\n";
        if (!finding.remedy.empty()) text += "         mend it: " + printable(finding.remedy) + "\n";
    }
    return text;
}

}  // namespace

const char* to_string(FindingStatus status) {
    switch (status) {
        case FindingStatus::ok:
            return "ok";
        case FindingStatus::warning:
            return "warning";
        case FindingStatus::problem:
            return "problem";
    }
    return "";
}

Findings examine(const Machine& machine) {
    Findings findings;
    const std::vector<PciGpu> gpus = pci_gpus(machine);
    check_versions(machine, findings);
    check_processor(machine, findings);
    check_memory(machine, findings);
    check_gpus(gpus, findings);
    check_device_files(machine, gpus, findings);
    check_gtt(machine, gpus, findings);
    check_hrx(machine, gpus, findings);
    check_engine(machine, check_vulkan(machine, gpus, findings), findings);
    check_folders(machine, findings);
    check_port(machine, findings);
    return findings;
}

bool any_problem(const Findings& findings) { return count(findings, FindingStatus::problem) != 0; }

std::string findings_to_text(const Findings& findings) { return lines_of(findings) + summary(findings); }

std::string findings_to_json(const Findings& findings) {
    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"check", printable(finding.check)},
                        {"status", to_string(finding.status)},
                        {"found", printable(finding.found)},
                        {"remedy", printable(finding.remedy)}});
    }
    return Json{{"problems", count(findings, FindingStatus::problem)},
                {"warnings", count(findings, FindingStatus::warning)},
                {"findings", std::move(list)}}
               .dump(2) +
           "\n";
}

std::string findings_to_report(const Machine& machine, const Findings& findings) {
    std::string text = "1bit doctor report\n" + lines_of(findings);
    for (const auto& [name, value] : machine.environment)
        text += "environment: " + name + "=" + printable(value) + "\n";
    text += summary(findings);
    // "/" as home would turn every path into "~"
    if (machine.home.size() > 1) text = replaced(std::move(text), machine.home, "~");
    // a short name such as "a" is no secret worth damaging every word for
    if (machine.user.size() > 3) text = replaced(std::move(text), machine.user, "USER");
    return text;
}

}  // namespace onebit
