// SPDX-License-Identifier: Apache-2.0
//
// The name of this host, as log lines and handshakes give it.
#pragma once

#include <string>

namespace beeline {

// Asked once; "localhost" when the system does not tell.
const std::string& host_name();

}  // namespace beeline
