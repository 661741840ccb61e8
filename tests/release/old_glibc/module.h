// SPDX-License-Identifier: Apache-2.0
//
// Functions of a library that is linked as the plugin is, with a C++ library of its own.
#pragma once

// Throws an exception through several functions and catches it; returns its text, or "not caught".
using CaughtText = const char*();
inline constexpr const char* kCaughtText = "caught_text";

// Throws in `threads` threads at the same time, each `times` times; returns how many exceptions
// were caught.
using CaughtInThreads = int(int threads, int times);
inline constexpr const char* kCaughtInThreads = "caught_in_threads";

// Asks for more memory than there is; returns whether std::bad_alloc was caught.
using CaughtBadAlloc = bool();
inline constexpr const char* kCaughtBadAlloc = "caught_bad_alloc";
