// SPDX-License-Identifier: Apache-2.0
//
// The name of this host for log lines and handshakes.
#pragma once

#include <string>

namespace beeline {

// "localhost" if the system does not say. The system is asked each time: a name that a thread is
// just storing while another one forks would never be there for the child.
std::string host_name();

}  // namespace beeline
