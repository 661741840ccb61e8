// SPDX-License-Identifier: Apache-2.0
#include "softnic/gpu/contexts.h"

#include <algorithm>
#include <array>

namespace softnic::gpu {
namespace {

// It has no destructor, so that no code of this library runs when a thread of the program ends.
struct Stack {
  std::array<Context*, 64> contexts;
  std::size_t depth;
};
thread_local Stack t_stack;

}  // namespace

void Contexts::set_up(std::size_t gpus) {
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    Context& primary = contexts_.emplace_back();
    primary.gpu = static_cast<int>(gpu);
    primary.is_primary = true;
  }
  gpus_ = gpus;
}

Context* Contexts::primary(Ordinal gpu) {
  if (gpu < 0 || static_cast<std::size_t>(gpu) >= gpus_) return nullptr;
  return &contexts_[static_cast<std::size_t>(gpu)];
}

Context* Contexts::make(int gpu, unsigned flags) {
  Context& context = contexts_.emplace_back();
  context.gpu = gpu;
  context.flags = flags;
  context.is_alive = true;
  return &context;
}

bool Contexts::is_known(const Context* context) const {
  return std::any_of(contexts_.begin(), contexts_.end(),
                     [&](const Context& known) { return &known == context; });
}

Context* Contexts::current() {
  return t_stack.depth == 0 ? nullptr : t_stack.contexts[t_stack.depth - 1];
}

CuResult Contexts::push(Context* context) {
  if (t_stack.depth == t_stack.contexts.size()) return CuResult::kOutOfMemory;
  t_stack.contexts[t_stack.depth++] = context;
  return CuResult::kSuccess;
}

Context* Contexts::pop() {
  return t_stack.depth == 0 ? nullptr : t_stack.contexts[--t_stack.depth];
}

CuResult Contexts::set_current(Context* context) {
  pop();
  return context == nullptr ? CuResult::kSuccess : push(context);
}

}  // namespace softnic::gpu
