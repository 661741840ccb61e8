// SPDX-License-Identifier: Apache-2.0
//
// The objects behind the pointers of programs: the structures of verbs.h with private members. They
// are small, since programs create thousands to measure the plugin's memory for each.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tests/support/nullverbs/ring.h"
#include "tests/support/nullverbs/visit.h"

namespace nullverbs {

struct Device : ibv_device {
  // Provider libraries keep their own data after an ibv_device.
  std::byte nothing_of_yours[512] = {};
  std::uint32_t index = 0;
};

// Programs hold a pointer to verbs_context::context, which is its last member.
struct Context : verbs_context {
  static Context& of(ibv_context* context) noexcept {
    return *static_cast<Context*>(reinterpret_cast<verbs_context*>(
        reinterpret_cast<char*>(context) - offsetof(verbs_context, context)));
  }
  const Device& device() const noexcept { return *static_cast<const Device*>(context.device); }
};

// Counts the objects that were created in or from this one, which cannot be destroyed before them.
using Users = std::atomic<std::uint32_t>;

struct ThreadDomain : ibv_td {
  Users users = 0;

  static ThreadDomain& of(ibv_td* td) noexcept { return *static_cast<ThreadDomain*>(td); }
};

// A protection domain, or a parent domain, which has the keys of the one it was created from.
struct Domain : ibv_pd {
  std::uint32_t number = 0;
  Users users = 0;
  Domain* origin = nullptr;  // of a parent domain
  ThreadDomain* thread_domain = nullptr;

  static Domain& of(ibv_pd* pd) noexcept { return *static_cast<Domain*>(pd); }
};

struct Completion {
  std::uint64_t wr_id;
  std::uint32_t qp_num;
  std::uint32_t byte_len;
  __be32 imm_data;
  std::uint16_t frees;  // entries of the send queue that it frees
  std::uint8_t status;  // ibv_wc_status
  std::uint8_t opcode : 5;
  std::uint8_t is_receive : 1;
  std::uint8_t has_immediate : 1;
};
static_assert(sizeof(Completion) == 24);

// An ibv_cq or an ibv_cq_ex: they begin alike, and programs cast from one to the other.
struct Cq {
  SpinLock lock;
  bool is_extended;
  Promise one_thread;
  Domain* domain;                      // in which it was created; may be null
  std::atomic<std::uint32_t> waiting;  // = ring.count(), readable without the lock
  Ring<Completion> ring;
  union {
    ibv_cq plain;
    ibv_cq_ex extended;
  };

  static Cq& of(ibv_cq* cq) noexcept {
    return *reinterpret_cast<Cq*>(reinterpret_cast<char*>(cq) - offsetof(Cq, plain));
  }
  std::size_t bytes() const noexcept {
    return is_extended ? sizeof(Cq) : offsetof(Cq, plain) + sizeof(ibv_cq);
  }
  void push(const Completion& completion);
};

struct Receive {
  std::uint64_t wr_id;
  ibv_sge place;
};

// State and receives are changed under the lock. One thread at a time posts sends.
struct Qp {
  ibv_qp base;
  SpinLock lock;
  bool signals_all;
  Promise one_sender;
  Promise one_receiver;
  std::uint8_t state_code;  // ibv_qp_state; base.state is the copy that programs see
  std::uint32_t access;
  std::uint32_t domain;  // number
  std::uint32_t peer;    // its number
  ibv_qp_cap cap;
  std::atomic<std::uint32_t> sends_open;  // used entries of the send queue
  std::uint32_t silent;                   // of these, unsignaled ones since the last signaled one
  Ring<Receive> receives;

  static Qp& of(ibv_qp* qp) noexcept { return *reinterpret_cast<Qp*>(qp); }
  ibv_qp_state state() const noexcept { return static_cast<ibv_qp_state>(state_code); }
  void set_state(ibv_qp_state state);
  void flush_receives();
};
static_assert(offsetof(Qp, base) == 0);

}  // namespace nullverbs
