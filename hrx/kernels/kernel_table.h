// What loom-pack writes for a kernel file, and what kernel_set() is made of.
#pragma once

#include "hrx/kernels/kernel_set.h"

namespace onebit::loom {

using FamilyFunction = std::span<const Kernel> (*)();

// Written by cmake/HrxKernels.cmake; ended by a null.
extern const FamilyFunction kernel_families[];

}  // namespace onebit::loom
