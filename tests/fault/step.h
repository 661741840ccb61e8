// SPDX-License-Identifier: Apache-2.0
//
// Where a worker is, for whoever has to find out why it stopped there.
#pragma once

namespace beeline::test {

// `name` must live for ever: a literal.
void step(const char* name) noexcept;

// After this many seconds in one process, it says its step on stderr and aborts.
void abort_if_stuck(unsigned seconds) noexcept;

}  // namespace beeline::test
