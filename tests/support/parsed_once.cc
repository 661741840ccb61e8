// SPDX-License-Identifier: Apache-2.0
//
// Meson makes a precompiled header for a source that uses it.
namespace {
[[maybe_unused]] constexpr int kNothing = 0;
}
