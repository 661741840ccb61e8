// SPDX-License-Identifier: Apache-2.0
//
// What making an object and refusing to make one have in common.
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

// Whether NULLVERBS_REFUSES names it, as a device without it would: thread domains ("td"), parent
// domains ("pd"), CQs ("cq") and queue pairs ("qp") in those. Sets errno. No failure: whoever asks
// reckons with it.
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
