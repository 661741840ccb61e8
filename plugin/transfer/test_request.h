// SPDX-License-Identifier: Apache-2.0
//
// Comm::test(). In a header, to become part of the exported test; beside comm.h, because it calls
// both ends by their type. There is no virtual call in it, and one function for each end.
#pragma once

#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

// The arguments of a test, and the completions that it finds. The members are volatile, so that the
// compiler keeps the arguments on the stack during the poll. In registers they would have to be
// saved and restored by every test, also by those that find nothing and do not need them again.
struct TestFrame {
  Request* volatile request;
  int* volatile done;
  int* volatile sizes;
  int volatile found;
  Completions completions;
};

template <class End>
BL_INLINED Errc Comm::test_fast(End& end, Request& request, int* done, int* sizes) {
  *done = 0;
  TestFrame frame;  // not initialized: the completions are an output
  frame.request = &request;
  frame.done = done;
  frame.sizes = sizes;
  const int found = poll(end.only_path_.cq, frame.completions);
  if (found != 0) {
    // Most completions come alone when messages go one by one.
    if (found != 1 || !end.absorb_one(frame.completions[0])) {
      frame.found = found;
      absorb_all(end, frame);
    }
    Request& tested = *frame.request;
    if (tested.missing == 0) {
      end.template finish<End>(tested, frame.done, frame.sizes);
      return Errc::kOk;
    }
  }
  if (const Errc code = end.post_what_is_held(); code != Errc::kOk) [[unlikely]]
    return code;
  if (end.watch_.count_empty_test()) [[unlikely]]
    return end.check_for_stall();
  return Errc::kOk;
}

template <class End>
void Comm::absorb_all(End& end, const TestFrame& frame) {
  const int found = frame.found;
  end.absorb(end.only_path_, frame.completions.data(), found);
  if (found == kMostCompletions) end.collect();
}

// Calls `f` with the comm as the end that it is.
template <class F>
BL_INLINED auto with_end(Comm& comm, F&& f) {
  if (comm.role() == Role::kSend) return f(static_cast<SendComm&>(comm));
  return f(static_cast<RecvComm&>(comm));
}

}  // namespace beeline
