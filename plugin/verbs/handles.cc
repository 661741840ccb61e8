// SPDX-License-Identifier: Apache-2.0
#include "plugin/verbs/handles.h"

#include <cstring>

#include "common/base/log.h"

namespace beeline::verbs::detail {

void warn_not_freed(const char* what, int rc) noexcept {
  const int sys_errno = rc > 0 ? rc : errno;
  BL_WARN_LIMITED(4, "freeing a %s failed: %s", what, std::strerror(sys_errno));
}

}  // namespace beeline::verbs::detail
