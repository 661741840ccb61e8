// SPDX-License-Identifier: Apache-2.0
// Contexts: one primary context for each GPU, those that the program made, and the stack of each
// thread, whose top is the current one.
#pragma once

#include <deque>
#include <vector>

#include "softnic/gpu/cuda_abi.h"

namespace softnic::gpu {

struct Context {
  int gpu = 0;
  unsigned flags = 0;
  unsigned retained = 0;  // of a primary context: how often
  bool is_primary = false;
  bool is_alive = false;
};

class Contexts {
 public:
  void set_up(std::size_t gpus);

  // nullptr: no such GPU.
  Context* primary(Ordinal gpu);
  Context* make(int gpu, unsigned flags);
  // Whether it was ever handed out. One that is gone keeps its place: no other gets its address.
  bool is_known(const Context* context) const;

  // The stack of this thread.
  static Context* current();
  static CuResult push(Context* context);
  static Context* pop();  // nullptr: it was empty
  // Puts it in place of the top; nullptr: takes the top away.
  static CuResult set_current(Context* context);

 private:
  std::deque<Context> contexts_;  // the primary ones first; addresses stay
  std::size_t gpus_ = 0;
};

}  // namespace softnic::gpu
