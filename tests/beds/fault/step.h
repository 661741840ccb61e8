// SPDX-License-Identifier: Apache-2.0
//
// Records the current step of a worker, and reports it if the worker hangs.
#pragma once

namespace beeline::test {

// `name` must be a string literal.
void step(const char* name) noexcept;

// If the process still runs after this many seconds, prints its step to stderr and aborts.
void abort_if_stuck(unsigned seconds) noexcept;

}  // namespace beeline::test
