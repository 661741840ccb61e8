// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/release/old_glibc/module.h"

#define EXPORTED extern "C" [[gnu::visibility("default")]]

namespace {

// A frame with a destructor at each level, so that the unwinder has something to do.
[[gnu::noinline]] int throw_below(int levels) {
  const std::string text(static_cast<std::size_t>(levels), 'x');
  if (levels == 0) throw std::runtime_error("thrown in a library");
  return throw_below(levels - 1) + static_cast<int>(text.size());
}

bool catches(int levels) {
  try {
    throw_below(levels);
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

}  // namespace

EXPORTED const char* caught_text() {
  static std::string text;
  try {
    throw_below(5);
    text = "not caught";
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}

EXPORTED int caught_in_threads(int threads, int times) {
  std::atomic<int> caught = 0;
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (int k = 0; k < times; ++k) caught += catches(i);
    });
  }
  for (std::thread& each : running) each.join();
  return caught;
}

EXPORTED bool caught_bad_alloc() {
  try {
    ::operator delete(::operator new(SIZE_MAX / 4));
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  }
}
