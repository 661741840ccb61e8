// SPDX-License-Identifier: Apache-2.0
//
// The plugin that is being measured.
#pragma once

#include <memory>

#include "tools/nccl/loader.h"
#include "tools/perf/call_watch.h"

namespace beeline::perf {

struct Net : nccl::Net {
  std::shared_ptr<CallWatches> watches = std::make_shared<CallWatches>();
};

}  // namespace beeline::perf
