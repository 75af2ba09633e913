// Who listens on a TCP port of this machine, as far as /proc tells this user.
#pragma once

#include <cstdint>
#include <string>

namespace onebit {

// "PROGRAM (pid N)", "a process of user UID" when only the socket can be seen, or empty when nobody listens.
// proc: replaceable for tests.
std::string port_owner(uint16_t port, const std::string& proc = "/proc");

}  // namespace onebit
