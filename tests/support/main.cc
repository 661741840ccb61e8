// SPDX-License-Identifier: Apache-2.0
//
// Catch2's main(), compiled once for all test programs.
#define CATCH_CONFIG_MAIN
#include "tests/support/catch.h"
