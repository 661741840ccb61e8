// SPDX-License-Identifier: Apache-2.0
// The names of completion error statuses in `softnic ctl` and `softnic ls`: "retry_exc_err" for
// IBV_WC_RETRY_EXC_ERR.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"

namespace softnic {

// Ignores case and an IBV_WC_ prefix. Success is not an error status.
beeline::Outcome<std::uint32_t> parse_wc_status(const std::string& text);

std::string wc_status_name(std::uint32_t status);

}  // namespace softnic
