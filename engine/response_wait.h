// How requests wait for their results in llama.cpp's server: a client that left is noticed in time, and a result wakes
// the one request that it is for.
#pragma once

struct server_response;  // llama.cpp, tools/server/server-queue.h

namespace onebit {

// Links the functions below into the program, which stand before the server's own in the search for their names.
//
// server_response::recv_with_timeout. The server looks after a time limit whether the client is still there; in its own
// each result of any other request starts the limit anew, so that on a busy server nobody looks before the request's
// own first result. And each result wakes all requests: of 16 streams, 16 threads for every token.
// What server_response::broadcast and terminate bring, which the server does not call, is seen at the time limit.
void use_response_wait();

// Wakes who waits for a result of that task. After the result is in the queue. Any thread.
void wake_for_result(const server_response* queue, int id_task);

}  // namespace onebit
