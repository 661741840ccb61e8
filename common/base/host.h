// SPDX-License-Identifier: Apache-2.0
//
// The name of this host for log lines and handshakes.
#pragma once

#include <string>

namespace beeline {

// The system is asked once. "localhost" if it does not say.
const std::string& host_name();

}  // namespace beeline
