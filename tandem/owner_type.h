// Places tensors in shared buffers as the strictest member wants them. A shared buffer keeps the owner's buffer type,
// and ggml asks that type where the next tensor goes, so the owner's type answers for all members.
#pragma once

#include <vector>

#include "ggml-backend-impl.h"

namespace onebit::tandem {

// From now on the alignment and the size of a tensor that the owner's type reports are the largest of its own and of
// the types'. Again for the same owner: of all so far. For ever: buffers of the type may outlive a tandem. Any thread.
void ask_all_members(ggml_backend_buffer_type_t owner, const std::vector<ggml_backend_buffer_type_t>& types);

}  // namespace onebit::tandem
