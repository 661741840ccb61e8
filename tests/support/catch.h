// SPDX-License-Identifier: Apache-2.0
//
// The one place that names Catch2's header, so that moving from v2 to v3 is one edit.
#pragma once

#include <catch2/catch.hpp>
