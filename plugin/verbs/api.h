// SPDX-License-Identifier: Apache-2.0
//
// A table of libibverbs' functions, loaded with dlopen. Every call to the library goes through it,
// so that the plugin can be loaded on a host without rdma-core and can say what is missing.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/problem.h"

// X(member, symbol, version node, need). A library without a required symbol is not used. An
// optional symbol that is missing is a null member, and its caller reports that.
//
// The types are from the distribution's header. ibv_get_device_list, ibv_reg_mr and ibv_query_port
// are also macros there, which are not expanded if no parenthesis follows the name.
#define BL_VERBS_FUNCTIONS(X)                                         \
  X(get_device_list, ibv_get_device_list, "IBVERBS_1.1", kRequired)   \
  X(free_device_list, ibv_free_device_list, "IBVERBS_1.1", kRequired) \
  X(get_device_name, ibv_get_device_name, "IBVERBS_1.1", kRequired)   \
  X(get_device_guid, ibv_get_device_guid, "IBVERBS_1.1", kRequired)   \
  X(open_device, ibv_open_device, "IBVERBS_1.1", kRequired)           \
  X(close_device, ibv_close_device, "IBVERBS_1.1", kRequired)         \
  X(get_async_event, ibv_get_async_event, "IBVERBS_1.1", kRequired)   \
  X(ack_async_event, ibv_ack_async_event, "IBVERBS_1.1", kRequired)   \
  X(query_device, ibv_query_device, "IBVERBS_1.1", kRequired)         \
  X(query_port_compat, ibv_query_port, "IBVERBS_1.1", kRequired)      \
  X(query_gid, ibv_query_gid, "IBVERBS_1.1", kRequired)               \
  X(query_pkey, ibv_query_pkey, "IBVERBS_1.1", kRequired)             \
  X(alloc_pd, ibv_alloc_pd, "IBVERBS_1.1", kRequired)                 \
  X(dealloc_pd, ibv_dealloc_pd, "IBVERBS_1.1", kRequired)             \
  X(reg_mr, ibv_reg_mr, "IBVERBS_1.1", kRequired)                     \
  X(dereg_mr, ibv_dereg_mr, "IBVERBS_1.1", kRequired)                 \
  X(create_cq, ibv_create_cq, "IBVERBS_1.1", kRequired)               \
  X(destroy_cq, ibv_destroy_cq, "IBVERBS_1.1", kRequired)             \
  X(create_qp, ibv_create_qp, "IBVERBS_1.1", kRequired)               \
  X(modify_qp, ibv_modify_qp, "IBVERBS_1.1", kRequired)               \
  X(destroy_qp, ibv_destroy_qp, "IBVERBS_1.1", kRequired)             \
  X(fork_init, ibv_fork_init, "IBVERBS_1.1", kOptional)               \
  X(reg_mr_iova2, ibv_reg_mr_iova2, "IBVERBS_1.8", kOptional)         \
  X(query_ece, ibv_query_ece, "IBVERBS_1.10", kOptional)              \
  X(set_ece, ibv_set_ece, "IBVERBS_1.10", kOptional)                  \
  X(query_gid_table, _ibv_query_gid_table, "IBVERBS_1.11", kOptional) \
  X(reg_dmabuf_mr, ibv_reg_dmabuf_mr, "IBVERBS_1.12", kOptional)

namespace beeline::verbs {

// Lifecycle: load() fills it, and the library is never unloaded, because providers keep threads and
// fork handlers. Handles have pointers to it, so it must outlive them.
// Threads: read-only after loading. The functions are thread safe.
struct Api {
// A member cannot be declared in parentheses.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define BL_VERBS_MEMBER(member, symbol, node, need) decltype(&::symbol) member = nullptr;
  BL_VERBS_FUNCTIONS(BL_VERBS_MEMBER)
#undef BL_VERBS_MEMBER

  // These are not symbols of the library: the header calls the provider of the open device, and
  // returns EOPNOTSUPP if the provider does not have them.
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*) = ibv_alloc_td;
  int (*dealloc_td)(ibv_td*) = ibv_dealloc_td;
  ibv_pd* (*alloc_parent_domain)(ibv_context*,
                                 ibv_parent_domain_init_attr*) = ibv_alloc_parent_domain;
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*) = ibv_create_cq_ex;

  // Newer than the headers of the build. Speed in units of 100 Mbit/s. Null before rdma-core 62.
  int (*query_port_speed)(ibv_context*, std::uint32_t port, std::uint64_t* speed) = nullptr;

  std::string library;  // the name that was loaded

  bool can_relax_ordering() const noexcept { return reg_mr_iova2 != nullptr; }
  bool can_register_dmabuf() const noexcept { return reg_dmabuf_mr != nullptr; }
};

struct Loaded {
  Api api;
  std::vector<std::string> notes;  // sentences for the log: an explicit path that did not load
};

// With the version node, as programs are linked with the library. A replacement of the library may
// have no version nodes.
void* find_symbol(void* library, const char* symbol, const char* node);

// Tries `explicit_path` unless it is empty, then libibverbs.so, then libibverbs.so.1. The error
// says which names were tried, why each failed, and what to do.
Outcome<Loaded> load(const std::string& explicit_path);

}  // namespace beeline::verbs
