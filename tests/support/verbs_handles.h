// SPDX-License-Identifier: Apache-2.0
//
// Owning pointers for verbs objects, and Catch2's text for verbs enums. Declare handles in the
// order of creation, since libibverbs requires that they are freed in reverse.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

#include "tests/support/catch.h"

namespace beeline::test {

// The number of objects that could not be freed. A destructor cannot fail a test, so it counts
// here, and TestFabric's destructor checks that the count is zero.
inline std::atomic<int> handles_left{0};

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const noexcept {
    const int rc = Free(object);
    if (rc == 0) return;
    std::fprintf(stderr, "a verbs object could not be freed: %d\n", rc);
    handles_left.fetch_add(1);
  }
};

using ContextPtr = std::unique_ptr<ibv_context, Freed<ibv_close_device>>;
using PdPtr = std::unique_ptr<ibv_pd, Freed<ibv_dealloc_pd>>;
using CqPtr = std::unique_ptr<ibv_cq, Freed<ibv_destroy_cq>>;
using QpPtr = std::unique_ptr<ibv_qp, Freed<ibv_destroy_qp>>;
using MrPtr = std::unique_ptr<ibv_mr, Freed<ibv_dereg_mr>>;

inline const char* state_name(ibv_qp_state state) {
  static constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS",
                                           "SQD",   "SQE",  "ERR", "UNKNOWN"};
  return state <= IBV_QPS_UNKNOWN ? kNames[state] : "out of range";
}

}  // namespace beeline::test

namespace Catch {

template <>
struct StringMaker<ibv_wc_status> {
  static std::string convert(ibv_wc_status status) { return ibv_wc_status_str(status); }
};
template <>
struct StringMaker<ibv_event_type> {
  static std::string convert(ibv_event_type type) { return ibv_event_type_str(type); }
};
template <>
struct StringMaker<ibv_qp_state> {
  static std::string convert(ibv_qp_state state) { return beeline::test::state_name(state); }
};

}  // namespace Catch
