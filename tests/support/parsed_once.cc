// SPDX-License-Identifier: Apache-2.0
//
// Meson only builds a precompiled header for a target that has a source.
namespace {
[[maybe_unused]] constexpr int kNothing = 0;
}
