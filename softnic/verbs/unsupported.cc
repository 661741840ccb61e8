// SPDX-License-Identifier: Apache-2.0
// Calls that softnic does not support. They are defined here and return EOPNOTSUPP, because the
// real library would take softnic's objects for its own.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

namespace {

template <class T>
T* unsupported() {
  errno = EOPNOTSUPP;
  return nullptr;
}

int unsupported_errno() { return errno = EOPNOTSUPP; }

}  // namespace

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr*) { return unsupported<ibv_ah>(); }
ibv_ah* ibv_create_ah_from_wc(ibv_pd*, ibv_wc*, ibv_grh*, std::uint8_t) {
  return unsupported<ibv_ah>();
}
int ibv_init_ah_from_wc(ibv_context*, std::uint8_t, ibv_wc*, ibv_grh*, ibv_ah_attr*) {
  errno = EOPNOTSUPP;
  return -1;
}
int ibv_destroy_ah(ibv_ah*) { return unsupported_errno(); }
int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return unsupported_errno(); }
int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return unsupported_errno(); }
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
  return unsupported_errno();
}

int ibv_rereg_mr(ibv_mr*, int, ibv_pd*, void*, std::size_t, int) {
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

ibv_context* ibv_import_device(int) { return unsupported<ibv_context>(); }
ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) { return unsupported<ibv_pd>(); }
void ibv_unimport_pd(ibv_pd*) {}
ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) { return unsupported<ibv_mr>(); }
void ibv_unimport_mr(ibv_mr*) {}
ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) { return unsupported<ibv_dm>(); }
void ibv_unimport_dm(ibv_dm*) {}

}  // extern "C"
