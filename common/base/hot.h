// SPDX-License-Identifier: Apache-2.0
//
// Attributes that decide whether a function is inlined. A fast function handles a message while
// nothing is the matter; a slow function handles what a fast one leaves.
#pragma once

// Such a member is defined in a header, or in the only file that uses it.
#define BL_INLINED [[gnu::always_inline]] inline
#define BL_INLINED_LAMBDA __attribute__((always_inline))
// A slow function: it is kept away from the code of the fast ones.
#define BL_SLOW [[gnu::noinline, gnu::cold]]
