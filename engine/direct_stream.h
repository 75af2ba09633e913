// Streamed answers go from the engine straight to the client: cpp-httplib's chunks are written to the client's socket
// once the supervisor has sent it, so that no event wakes the supervisor.
#pragma once

#include "server/supervisor/stream_table.h"

namespace onebit {

// From now on in this process: a thread that sends the head of a chunked event stream over a Unix connection takes the
// offer that comes back over it (StreamOffer with one descriptor), at the first chunk before which the supervisor has
// passed on all others. From then on each send of a whole chunk over that connection goes to the client's socket, and
// fails with EPIPE when client or supervisor are gone or the slot is closed. The last chunk and all else go over the
// connection. Connections without an offer, and all other sockets, are as before. table must stay valid until another
// one, or null, is installed; call it while no stream runs.
//
// The program's send, recv and shutdown stand before libc's; a server must serve a connection on one thread, send each
// chunk with one call, and shut it down before it closes it, all of which cpp-httplib does.
void install_direct_streams(StreamTable* table);

}  // namespace onebit
