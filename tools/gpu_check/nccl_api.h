// SPDX-License-Identifier: Apache-2.0
//
// The NCCL functions that this program calls, declared here and loaded at run time. nccl_facts.cc
// compares the declarations with nccl.h where that is installed.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/gpu_check/library.h"

namespace beeline::gpu {

inline constexpr std::size_t kUniqueIdBytes = 128;
struct UniqueId {
  std::array<char, kUniqueIdBytes> bytes;
};
static_assert(sizeof(UniqueId) == kUniqueIdBytes);

using NcclComm = void*;
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclUint8 = 1;
inline constexpr int kNcclInt32 = 2;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclSum = 0;

// Each returned int is an ncclResult_t.
struct NcclFunctions {
  int (*get_version)(int* version);
  const char* (*get_error_string)(int result);
  const char* (*get_last_error)(NcclComm comm);
  int (*get_unique_id)(UniqueId* id);
  int (*comm_init_rank)(NcclComm* comm, int ranks, UniqueId id, int rank);
  int (*comm_get_async_error)(NcclComm comm, int* result);
  int (*comm_destroy)(NcclComm comm);
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int op, NcclComm comm,
                    void* stream);
  int (*all_gather)(const void* from, void* to, std::size_t count, int type, NcclComm comm,
                    void* stream);
  int (*reduce_scatter)(const void* from, void* to, std::size_t count, int type, int op,
                        NcclComm comm, void* stream);
  int (*send)(const void* from, std::size_t count, int type, int peer, NcclComm comm, void* stream);
  int (*recv)(void* to, std::size_t count, int type, int peer, NcclComm comm, void* stream);
  int (*group_start)();
  int (*group_end)();
};

class Nccl {
 public:
  // The library names to try: only $NCCL_LIB if that is set, or the usual name.
  static std::vector<std::string> places();
  static Outcome<Nccl> open();

  // "2.28.9, /usr/local/cuda/lib64/libnccl.so.2"
  Outcome<std::string> describe() const;

  const NcclFunctions& call() const noexcept { return call_; }
  // The error is "ncclAllReduce returned 3 (internal error): NCCL's own message".
  Outcome<void> check(const char* what, int result, NcclComm comm = nullptr) const;

 private:
  explicit Nccl(Library library) : library_(std::move(library)), call_() {}
  Outcome<void> find_functions();

  Library library_;
  NcclFunctions call_;
};

}  // namespace beeline::gpu
