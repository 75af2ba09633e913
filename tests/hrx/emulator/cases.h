// Every opcode's cases, one function a family: run by a test of the family's file, and all together by
// coverage_test.cpp, which fails for an opcode without a case.
#pragma once

namespace onebit::emulator {

void vector_float_cases();
void vector_integer_cases();
void vector_packed_cases();
void vector_convert_cases();
void compare_cases();
void scalar_cases();
void control_cases();
void lane_cases();
void lds_cases();
void memory_cases();
void atomic_cases();
void wmma_cases();
void dual_and_dpp_cases();

}  // namespace onebit::emulator
