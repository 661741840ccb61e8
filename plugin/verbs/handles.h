// SPDX-License-Identifier: Apache-2.0
//
// Owning handles of verbs objects. Declare them in the order of creation: members are destroyed in
// reverse, which is the order that libibverbs requires.
#pragma once

#include <infiniband/verbs.h>

#include <utility>

#include "plugin/verbs/api.h"
#include "plugin/verbs/check.h"

namespace beeline::verbs {

// For the warning.
constexpr const char* name_of(const ibv_context*) noexcept { return "device context"; }
constexpr const char* name_of(const ibv_pd*) noexcept { return "protection domain"; }
constexpr const char* name_of(const ibv_td*) noexcept { return "thread domain"; }
constexpr const char* name_of(const ibv_cq*) noexcept { return "completion queue"; }
constexpr const char* name_of(const ibv_qp*) noexcept { return "queue pair"; }
constexpr const char* name_of(const ibv_mr*) noexcept { return "memory region"; }

// Owns one verbs object or none, and frees it with the table that created it. If that fails, it
// logs a warning, because the owner could not do anything about it.
template <class T, auto Free>
class Handle {
 public:
  Handle() noexcept = default;
  Handle(const Api& api, T* raw) noexcept : api_(&api), raw_(raw) {}
  Handle(Handle&& other) noexcept : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(api_, other.api_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() { reset(); }

  T* get() const noexcept { return raw_; }
  T* operator->() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != nullptr; }
  // Not for a default-constructed handle.
  const Api& api() const noexcept { return *api_; }

  void reset() noexcept {
    T* const old = std::exchange(raw_, nullptr);
    if (old == nullptr) return;
    const char* const name = name_of(old);
    if (const int rc = (api_->*Free)(old); rc != 0) warn_not_freed(name, rc);
  }

 private:
  const Api* api_ = nullptr;
  T* raw_ = nullptr;
};

using Context = Handle<ibv_context, &Api::close_device>;
using Pd = Handle<ibv_pd, &Api::dealloc_pd>;
using Td = Handle<ibv_td, &Api::dealloc_td>;
using Cq = Handle<ibv_cq, &Api::destroy_cq>;
using Qp = Handle<ibv_qp, &Api::destroy_qp>;
using Mr = Handle<ibv_mr, &Api::dereg_mr>;

}  // namespace beeline::verbs
