// SPDX-License-Identifier: Apache-2.0
//
// Comm::test(). In a header, to become part of the exported test; beside comm.h, because it calls
// both ends by their type. There is no virtual call in it.
#pragma once

#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

BL_INLINED Errc Comm::test(Request& request, int* done, int* sizes) {
  *done = 0;
  if (gate_.is_alarmed()) [[unlikely]]
    return test_while_alarmed(request, done, sizes);
  if (has_several_paths_) [[unlikely]]
    return test_on_paths(request, done, sizes);
  DataPath& path = only_path_;
  Completions completions;
  const int found = poll(path.cq, completions);
  if (found != 0) {
    if (found == 1) {
      absorb_one(path, completions[0]);
    } else if (found == kMostCompletions) [[unlikely]] {
      absorb_all(path, completions, found);
    } else {
      absorb(path, completions.data(), found);
    }
    if (request.missing == 0) {
      finish(request, done, sizes);
      return Errc::kOk;
    }
  }
  if (watch_.count_empty_test()) [[unlikely]]
    return check_for_stall();
  return Errc::kOk;
}

// Most completions come alone when messages go one by one.
BL_INLINED void Comm::absorb_one(DataPath& path, const ibv_wc& completion) {
  if (role() == Role::kSend) {
    static_cast<SendComm*>(this)->absorb_one(path, completion);
  } else {
    static_cast<RecvComm*>(this)->absorb_one(path, completion);
  }
}

BL_INLINED void Comm::absorb(DataPath& path, const ibv_wc* completions, int found) {
  if (role() == Role::kSend) {
    static_cast<SendComm*>(this)->absorb(path, completions, found);
  } else {
    static_cast<RecvComm*>(this)->absorb(path, completions, found);
  }
}

}  // namespace beeline
