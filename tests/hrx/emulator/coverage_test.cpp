// If this fails, the emulator interprets an opcode that no test has checked against the ISA reference.
#include <gtest/gtest.h>

#include <fstream>

#include "hrx/emulator/bind.h"
#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {

TEST(Coverage, EveryOpcodeHasACase) {
    for (void (*cases)() : {vector_float_cases, vector_integer_cases, vector_packed_cases, vector_convert_cases,
                            compare_cases, scalar_cases, control_cases, lane_cases, lds_cases, memory_cases,
                            atomic_cases, wmma_cases, dual_and_dpp_cases})
        cases();
    std::string missing;
    for (const std::string& name : covered_mnemonics()) {
        // rows for saturating forms, and names that only the second half of a dual instruction has
        if (name.find(' ') != std::string::npos) continue;
        const std::string dual = "v_dual_" + name.substr(std::min<std::size_t>(2, name.size()));
        if (exercised().count(name) == 0 && exercised().count(dual) == 0) missing += " " + name;
    }
    EXPECT_EQ(missing, "");
}

TEST(Coverage, DocumentationListsEveryOpcode) {
    std::ifstream file(ONEBIT_TEST_SOURCE "/docs/hrx-emulator.md");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string missing;
    for (const std::string& name : covered_mnemonics())
        if (name.find(' ') == std::string::npos && text.find("`" + name + "`") == std::string::npos)
            missing += " " + name;
    EXPECT_EQ(missing, "");
}

}  // namespace onebit::emulator
