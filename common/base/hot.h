// SPDX-License-Identifier: Apache-2.0
//
// For the hot path: functions that exist to have a name, and cost no call.
#pragma once

// A member so marked is defined in a header, or in the one file that uses it.
#define BL_INLINED [[gnu::always_inline]] inline
#define BL_INLINED_LAMBDA __attribute__((always_inline))
// What is rarely needed stays out of the way of what always is.
#define BL_APART [[gnu::noinline, gnu::cold]]
