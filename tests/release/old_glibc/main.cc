// SPDX-License-Identifier: Apache-2.0
//
// Catch2's main() for a program that has to run with an older glibc than the one it was built with.
// Catch2's stack for signal handlers has a size that an older glibc cannot tell, so there is none.
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#include "tests/support/catch.h"
