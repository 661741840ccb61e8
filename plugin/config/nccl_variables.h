// SPDX-License-Identifier: Apache-2.0
//
// The variables of NCCL's own InfiniBand and RoCE transport that the plugin does not read. A site
// that has set them for NCCL is told that they have no effect here.
#pragma once

#include <string_view>
#include <vector>

#include "common/base/finding.h"
#include "plugin/config/environ.h"

namespace beeline {

// settings-without-effect: one note that names those that are set, and that NCCL has.
// setting-unknown: for each NCCL_IB_ name that NCCL is not known to have. A warning if one letter
// of a name in `honored` is wrong, since the user expects an effect; otherwise a note, because a
// newer NCCL may have that name.
std::vector<Finding> find_nccl_variables(const Environ& environ,
                                         const std::vector<std::string_view>& honored);

}  // namespace beeline
