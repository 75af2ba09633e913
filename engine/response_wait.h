// Makes llama.cpp's server notice in time that a client has left.
#pragma once

namespace onebit {

// Links the function below into the program. The server waits for a result of a request with a time limit and looks
// after it whether the client is still there; each result of any other request starts the limit anew, so that on a
// busy server nobody looks before the request's own first result. The program's own server_response::recv_with_timeout
// stands before the server's in the search for its name and keeps to the limit.
void use_bounded_response_wait();

}  // namespace onebit
