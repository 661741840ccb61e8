// SPDX-License-Identifier: Apache-2.0
//
// Helpers to create objects, and to refuse to.
#pragma once

#include <cerrno>
#include <new>

#include "tests/support/nullverbs/arena.h"
#include "tests/support/nullverbs/counters.h"
#include "tests/support/nullverbs/objects.h"

namespace nullverbs {

template <class T>
T* refuse(int error) noexcept {
  errno = error;
  count(&NullverbsReport::failures);
  return nullptr;
}

// Whether NULLVERBS_REFUSES names this kind of object, so that the library acts like a device
// without it: thread domains ("td"), parent domains ("pd"), and CQs ("cq") and queue pairs ("qp")
// in those. Sets errno. It is not counted as a failure, since callers expect it.
bool refuses(const char* what);

template <class T>
T* make() {
  count_surely(&NullverbsReport::live_objects);
  return new (Arena::instance().take(sizeof(T))) T();
}
template <class T>
int unmake(T* object) noexcept {
  count_surely(&NullverbsReport::live_objects, -1);
  Arena::instance().give_back(object, sizeof(T));
  return 0;
}

}  // namespace nullverbs
