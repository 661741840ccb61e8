// SPDX-License-Identifier: Apache-2.0
// The error statuses of completions by name, as `softnic ctl` takes and `softnic ls` prints them:
// "retry_exc_err" for IBV_WC_RETRY_EXC_ERR.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/problem.h"

namespace softnic {

// Any case, with or without the IBV_WC_ in front. Success is not an error status.
beeline::Outcome<std::uint32_t> parse_wc_status(const std::string& text);

std::string wc_status_name(std::uint32_t status);

}  // namespace softnic
