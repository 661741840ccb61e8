// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/operation.h"

namespace beeline::gpu {
namespace {

void* pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

Outcome<void> send(const Nccl& nccl, const Case& one, const Work& work, DevicePointer from,
                   int peer) {
  return nccl.check(
      "ncclSend",
      nccl.call().send(pointer(from), one.count, nccl_type(one.type), peer, work.comm, work.stream),
      work.comm);
}

Outcome<void> receive(const Nccl& nccl, const Case& one, const Work& work, DevicePointer to,
                      int peer) {
  return nccl.check(
      "ncclRecv",
      nccl.call().recv(pointer(to), one.count, nccl_type(one.type), peer, work.comm, work.stream),
      work.comm);
}

Outcome<void> exchange_with_all(const Nccl& nccl, const Case& one, const Work& work) {
  for (int peer = 0; peer < work.ranks; ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * one.bytes();
    BL_TRY(send(nccl, one, work, work.input + offset, peer));
    BL_TRY(receive(nccl, one, work, work.output + offset, peer));
  }
  return {};
}

Outcome<void> pass_on(const Nccl& nccl, const Case& one, const Work& work) {
  BL_TRY(send(nccl, one, work, work.input, (work.rank + 1) % work.ranks));
  return receive(nccl, one, work, work.output, (work.rank + work.ranks - 1) % work.ranks);
}

template <class Body>
Outcome<void> in_a_group(const Nccl& nccl, const Work& work, const Body& body) {
  BL_TRY(nccl.check("ncclGroupStart", nccl.call().group_start(), work.comm));
  BL_TRY(body());
  return nccl.check("ncclGroupEnd", nccl.call().group_end(), work.comm);
}

}  // namespace

Outcome<void> queue(const Nccl& nccl, const Case& one, const Work& work) {
  const NcclFunctions& call = nccl.call();
  const void* const from = pointer(work.input);
  void* const to = pointer(work.output);
  const int type = nccl_type(one.type);
  switch (one.op) {
    case Op::kAllReduce:
      return nccl.check(
          "ncclAllReduce",
          call.all_reduce(from, to, one.count, type, kNcclSum, work.comm, work.stream), work.comm);
    case Op::kAllGather:
      return nccl.check("ncclAllGather",
                        call.all_gather(from, to, one.count, type, work.comm, work.stream),
                        work.comm);
    case Op::kReduceScatter:
      return nccl.check(
          "ncclReduceScatter",
          call.reduce_scatter(from, to, one.count, type, kNcclSum, work.comm, work.stream),
          work.comm);
    case Op::kAllToAll:
      return in_a_group(nccl, work, [&] { return exchange_with_all(nccl, one, work); });
    case Op::kSendRecv: return in_a_group(nccl, work, [&] { return pass_on(nccl, one, work); });
  }
  return fail("there is no such operation");
}

}  // namespace beeline::gpu
