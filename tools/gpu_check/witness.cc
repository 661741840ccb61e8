// SPDX-License-Identifier: Apache-2.0
//
// A network plugin whose tables are those of the real one, except for three functions that count
// their calls and forward them.
#include "tools/gpu_check/witness.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "include/nccl/net.h"

namespace beeline::gpu {
namespace {

CallCounts counts_without_a_file;
CallCounts* counts = &counts_without_a_file;

template <class Table>
Table real{};

template <class Table, class Size>
ncclResult_t reg_mr(void* comm, void* data, Size size, int type, void** mhandle) {
  if (type == NCCL_PTR_CUDA) ++counts->pointers;
  return real<Table>.regMr(comm, data, size, type, mhandle);
}

template <class Table>
ncclResult_t reg_mr_dmabuf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset,
                           int fd, void** mhandle) {
  ++counts->dmabufs;
  return real<Table>.regMrDmaBuf(comm, data, size, type, offset, fd, mhandle);
}

template <class Table>
ncclResult_t iflush(void* comm, int n, void** data, int* sizes, void** mhandles, void** request) {
  ++counts->flushes;
  return real<Table>.iflush(comm, n, data, sizes, mhandles, request);
}

// Ends the process, so that the fault is noticed: without the witness, the run proves nothing.
[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "gpu-check: witness: %s: %s\n", what, why);
  std::_Exit(3);
}

void map_counts() {
  const char* const file = std::getenv(kWitnessFile);
  if (file == nullptr) return;
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ftruncate(fd, sizeof(CallCounts)) != 0) give_up(file, "cannot be written");
  void* const memory = mmap(nullptr, sizeof(CallCounts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) give_up(file, "cannot be mapped");
  counts = static_cast<CallCounts*>(memory);
}

template <class Table>
void stand_before(void* plugin, const char* symbol, Table& table) {
  const auto* const found = static_cast<const Table*>(dlsym(plugin, symbol));
  if (found == nullptr) give_up(symbol, "the plugin has no such table");
  real<Table> = *found;
  table = *found;
  table.regMr = &reg_mr<Table>;
  table.regMrDmaBuf = &reg_mr_dmabuf<Table>;
  table.iflush = &iflush<Table>;
}

}  // namespace
}  // namespace beeline::gpu

extern "C" {

#define BL_WITNESS_TABLE(version)                                                      \
  [[gnu::visibility("default")]] extern ncclNet_##version##_t ncclNetPlugin_##version; \
  ncclNet_##version##_t ncclNetPlugin_##version
BL_WITNESS_TABLE(v6);
BL_WITNESS_TABLE(v7);
BL_WITNESS_TABLE(v8);
BL_WITNESS_TABLE(v9);
BL_WITNESS_TABLE(v10);
BL_WITNESS_TABLE(v11);
BL_WITNESS_TABLE(v12);

}  // extern "C"

namespace {

// Runs before dlopen returns to NCCL, which then reads the tables.
[[gnu::constructor]] void take_place() {
  using namespace beeline::gpu;
  const char* const file = std::getenv(kWitnessedPlugin);
  if (file == nullptr) give_up(kWitnessedPlugin, "is not set");
  void* const plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) give_up(file, dlerror());
  map_counts();
  stand_before(plugin, "ncclNetPlugin_v6", ncclNetPlugin_v6);
  stand_before(plugin, "ncclNetPlugin_v7", ncclNetPlugin_v7);
  stand_before(plugin, "ncclNetPlugin_v8", ncclNetPlugin_v8);
  stand_before(plugin, "ncclNetPlugin_v9", ncclNetPlugin_v9);
  stand_before(plugin, "ncclNetPlugin_v10", ncclNetPlugin_v10);
  stand_before(plugin, "ncclNetPlugin_v11", ncclNetPlugin_v11);
  stand_before(plugin, "ncclNetPlugin_v12", ncclNetPlugin_v12);
}

}  // namespace
