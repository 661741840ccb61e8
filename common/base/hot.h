// SPDX-License-Identifier: Apache-2.0
//
// Attributes that decide whether a function of the hot path is inlined.
#pragma once

// Such a member is defined in a header, or in the only file that uses it.
#define BL_INLINED [[gnu::always_inline]] inline
#define BL_INLINED_LAMBDA __attribute__((always_inline))
// Keeps rarely executed code away from the code that is always executed.
#define BL_APART [[gnu::noinline, gnu::cold]]
