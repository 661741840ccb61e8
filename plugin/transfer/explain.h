// SPDX-License-Identifier: Apache-2.0
//
// What a failed completion means, for the person who reads the log: one cause and one thing to do.
#pragma once

#include <infiniband/verbs.h>

#include "plugin/base/result.h"
#include "plugin/device/device.h"

namespace beeline {

struct Explanation {
  Errc code;         // kPeerClosed: the other end or the wire; kSystem: this end
  const char* hint;  // lower-case, no full stop
};

Explanation explain(ibv_wc_status status, Transport transport) noexcept;

}  // namespace beeline
