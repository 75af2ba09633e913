#include "hrx/kernels/kernel_table.h"

namespace onebit::loom {
const FamilyFunction kernel_families[] = {nullptr};
}  // namespace onebit::loom
