// Adds to the answers of llama.cpp's server what the tandem did for them.
#pragma once

namespace onebit {

// Links the functions of request_hooks.cpp into the program. They stand before the server's own of the same name:
// server_response::send, through which each answer goes, adds the object "onebit" to the timings of a finished request
// and the tandem's words to the error of a failed batch; server_queue::pop_deferred_task, which is called when a slot
// is let go, ends the slot's account. Both then do what the server's own do.
void use_request_hooks();

}  // namespace onebit
