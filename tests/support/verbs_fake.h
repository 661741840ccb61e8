// SPDX-License-Identifier: Apache-2.0
//
// A fake libibverbs that records registrations and other calls, and can fail them. There can be
// only one at a time, since its functions find it through a global.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/verbs/api.h"

namespace beeline::test {

class FakeVerbs {
 public:
  struct Registration {
    std::uintptr_t start;
    std::size_t length;
    unsigned access;
    int fd = -1;
    std::uint64_t offset = 0;
    ibv_pd* pd = nullptr;
  };

  FakeVerbs() {
    current() = this;
    api.reg_mr = [](ibv_pd* pd, void* address, size_t length, int access) {
      return current()->make_mr({.start = reinterpret_cast<std::uintptr_t>(address),
                                 .length = length,
                                 .access = static_cast<unsigned>(access),
                                 .pd = pd});
    };
    api.reg_mr_iova2 = [](ibv_pd* pd, void* address, size_t length, uint64_t, unsigned access) {
      return current()->make_mr({.start = reinterpret_cast<std::uintptr_t>(address),
                                 .length = length,
                                 .access = access,
                                 .pd = pd});
    };
    api.reg_dmabuf_mr = [](ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                           int access) {
      return current()->make_mr({iova, length, static_cast<unsigned>(access), fd, offset, pd});
    };
    api.dereg_mr = [](ibv_mr* mr) {
      current()->free_mr(mr);
      return 0;
    };
    api.create_qp = [](ibv_pd*, ibv_qp_init_attr* init) { return current()->make_qp(*init); };
    api.destroy_qp = [](ibv_qp*) {
      ++current()->qps_freed;
      return current()->free_error;
    };
    api.modify_qp = [](ibv_qp*, ibv_qp_attr* attr, int mask) {
      current()->modified = *attr;
      current()->modified_mask = mask;
      return current()->modify_error;
    };
    api.close_device = [](ibv_context*) { return 0; };
    api.alloc_td = [](ibv_context*, ibv_td_init_attr*) { return current()->make_td(); };
    api.dealloc_td = [](ibv_td*) { return current()->free_domain("thread domain"); };
    api.alloc_parent_domain = [](ibv_context*, ibv_parent_domain_init_attr* init) {
      return current()->make_parent_domain(*init);
    };
    api.dealloc_pd = [](ibv_pd*) { return current()->free_domain("parent domain"); };
    api.create_cq_ex = [](ibv_context*, ibv_cq_init_attr_ex* init) -> ibv_cq_ex* {
      current()->cq_wish = *init;
      return nullptr;
    };
    api.get_async_event = [](ibv_context*, ibv_async_event* event) {
      return current()->take_event(*event);
    };
    api.ack_async_event = [](ibv_async_event*) { ++current()->events_acknowledged; };
  }
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;
  ~FakeVerbs() { current() = nullptr; }

  verbs::Api api;

  // Runs inside every registration, outside the fake's lock. Returns the errno to fail with, or 0.
  std::function<int(const Registration&)> on_register;
  std::function<std::uint32_t(const Registration&)> choose_key;  // of a new region
  std::function<void()> on_deregister;
  std::vector<Registration> registrations() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  int live_mrs() const noexcept { return live_mrs_.load(); }

  std::uint32_t inline_limit = 64;
  int qp_error = EINVAL;  // the errno for an inline size above the limit
  std::vector<std::uint32_t> inline_wishes;
  int qps_freed = 0;
  int free_error = 0;

  ibv_qp_attr modified = {};
  int modified_mask = 0;
  int modify_error = 0;

  // If set, the call fails with this errno.
  std::optional<int> td_error;
  std::optional<int> parent_domain_error;
  ibv_td td = {};
  ibv_pd parent_domain = {};
  ibv_parent_domain_init_attr parent_domain_wish = {};
  int domains_made = 0;
  std::vector<std::string> domains_freed;
  ibv_cq_init_attr_ex cq_wish = {};

  std::deque<ibv_async_event> events;
  int no_event_error = EAGAIN;
  int events_acknowledged = 0;

 private:
  static FakeVerbs*& current() {
    static FakeVerbs* one = nullptr;
    return one;
  }

  ibv_mr* make_mr(const Registration& asked) {
    {
      const std::lock_guard lock(mutex_);
      made_.push_back(asked);
    }
    if (const int error = on_register ? on_register(asked) : 0; error != 0) {
      errno = error;
      return nullptr;
    }
    const int number = ++live_mrs_;
    auto* const mr = new ibv_mr{};
    mr->lkey = mr->rkey = choose_key ? choose_key(asked) : static_cast<std::uint32_t>(number);
    mr->addr = reinterpret_cast<void*>(asked.start);
    mr->length = asked.length;
    return mr;
  }

  void free_mr(ibv_mr* mr) {
    if (on_deregister) on_deregister();
    --live_mrs_;
    delete mr;
  }

  ibv_qp* make_qp(ibv_qp_init_attr& init) {
    inline_wishes.push_back(init.cap.max_inline_data);
    if (init.cap.max_inline_data > inline_limit) {
      errno = qp_error;
      return nullptr;
    }
    init.cap.max_inline_data = inline_limit;
    return &qp_;
  }

  ibv_td* make_td() {
    if (td_error) {
      errno = *td_error;
      return nullptr;
    }
    ++domains_made;
    return &td;
  }

  ibv_pd* make_parent_domain(const ibv_parent_domain_init_attr& wish) {
    parent_domain_wish = wish;
    if (parent_domain_error) {
      errno = *parent_domain_error;
      return nullptr;
    }
    ++domains_made;
    return &parent_domain;
  }

  int free_domain(const char* what) {
    domains_freed.emplace_back(what);
    return 0;
  }

  int take_event(ibv_async_event& event) {
    if (events.empty()) {
      errno = no_event_error;
      return -1;
    }
    event = events.front();
    events.pop_front();
    return 0;
  }

  mutable std::mutex mutex_;
  std::vector<Registration> made_;
  std::atomic<int> live_mrs_{0};
  ibv_qp qp_ = {};
};

}  // namespace beeline::test
