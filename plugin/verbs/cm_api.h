// SPDX-License-Identifier: Apache-2.0
//
// A table of librdmacm's functions. The library is loaded with dlopen when it is needed for the
// first time: for iWARP devices, or because the user asks for it.
#pragma once

#include <rdma/rdma_cma.h>

#include <mutex>
#include <optional>
#include <string>

#include "common/base/problem.h"

// X(member, symbol, version node). All are required; the newest is from rdma-core 23.
#define BL_RDMACM_FUNCTIONS(X)                                       \
  X(create_event_channel, rdma_create_event_channel, "RDMACM_1.0")   \
  X(destroy_event_channel, rdma_destroy_event_channel, "RDMACM_1.0") \
  X(get_cm_event, rdma_get_cm_event, "RDMACM_1.0")                   \
  X(ack_cm_event, rdma_ack_cm_event, "RDMACM_1.0")                   \
  X(create_id, rdma_create_id, "RDMACM_1.0")                         \
  X(destroy_id, rdma_destroy_id, "RDMACM_1.0")                       \
  X(bind_addr, rdma_bind_addr, "RDMACM_1.0")                         \
  X(listen, rdma_listen, "RDMACM_1.0")                               \
  X(get_src_port, rdma_get_src_port, "RDMACM_1.0")                   \
  X(resolve_addr, rdma_resolve_addr, "RDMACM_1.0")                   \
  X(resolve_route, rdma_resolve_route, "RDMACM_1.0")                 \
  X(connect, rdma_connect, "RDMACM_1.0")                             \
  X(accept, rdma_accept, "RDMACM_1.0")                               \
  X(reject, rdma_reject, "RDMACM_1.0")                               \
  X(disconnect, rdma_disconnect, "RDMACM_1.0")                       \
  X(set_option, rdma_set_option, "RDMACM_1.0")                       \
  X(init_qp_attr, rdma_init_qp_attr, "RDMACM_1.2")                   \
  X(establish, rdma_establish, "RDMACM_1.2")

namespace beeline::verbs {

// Lifecycle: never unloaded. Threads: read-only after loading; the functions are thread safe.
struct CmApi {
// A member cannot be declared in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define BL_RDMACM_MEMBER(member, symbol, node) decltype(&::symbol) member = nullptr;
  BL_RDMACM_FUNCTIONS(BL_RDMACM_MEMBER)
#undef BL_RDMACM_MEMBER
};

// Tries `explicit_path`, or librdmacm.so.1 if that is empty. The error says why it failed and what
// to do.
Outcome<CmApi> load_cm(const std::string& explicit_path);

// Loads the library once, at the first call of get(). Threads: any.
class CmLibrary {
 public:
  explicit CmLibrary(std::string explicit_path) : path_(std::move(explicit_path)) {}
  // A library that is loaded already.
  explicit CmLibrary(const CmApi& api) : loaded_(api) {}

  Outcome<const CmApi*> get();

 private:
  const std::string path_;
  std::mutex mutex_;
  std::optional<Outcome<CmApi>> loaded_;
};

}  // namespace beeline::verbs
