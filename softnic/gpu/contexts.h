// SPDX-License-Identifier: Apache-2.0
// CUDA contexts: a primary context for each GPU, contexts that the program created, and the context
// stack of each thread.
#pragma once

#include <deque>
#include <vector>

#include "softnic/gpu/cuda_abi.h"

namespace softnic::gpu {

struct Context {
  int gpu = 0;
  unsigned flags = 0;
  unsigned retained = 0;  // reference count of a primary context
  bool is_primary = false;
  bool is_alive = false;
  bool is_held = false;  // a call waits for the context's work, and other calls for that call
};

class Contexts {
 public:
  void set_up(std::size_t gpus);

  // Returns nullptr if there is no such GPU.
  Context* primary(Ordinal gpu);
  Context* make(int gpu, unsigned flags);
  // Whether the pointer was ever returned to the program. The address of a destroyed context is not
  // reused.
  bool is_known(const Context* context) const;

  // The stack of this thread.
  static Context* current();
  static CuResult push(Context* context);
  static Context* pop();  // nullptr if the stack is empty
  // Replaces the top of the stack; nullptr removes it.
  static CuResult set_current(Context* context);

 private:
  std::deque<Context> contexts_;  // primary contexts first; a deque keeps addresses stable
  std::size_t gpus_ = 0;
};

}  // namespace softnic::gpu
