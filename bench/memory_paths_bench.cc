// SPDX-License-Identifier: Apache-2.0
//
// The cost of single verbs on softnic, within one process, for comparing changes of its internal
// paths.
#include <benchmark/benchmark.h>

#include "bench/support/endpoint.h"

namespace {

using beeline::bench::Endpoint;

constexpr size_t kMemoryBytes = 1 << 20;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;

// Two devices of one host, connected.
struct Loop {
  Loop() {
    from.connect(to.info());
    to.connect(from.info());
  }
  Endpoint from{"softnic0", kMemoryBytes};
  Endpoint to{"softnic1", kMemoryBytes};
};

void poll_empty_cq(benchmark::State& state) {
  Loop loop;
  ibv_wc done;
  for (auto _ : state) benchmark::DoNotOptimize(ibv_poll_cq(loop.from.cq(), 1, &done));
}
BENCHMARK(poll_empty_cq);

void write_and_poll(benchmark::State& state) {
  Loop loop;
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    loop.from.post({0, 0, bytes});
    loop.from.wait_for(1);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(write_and_poll)->Arg(0)->Arg(8)->Arg(2 << 10)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20);

void register_memory(benchmark::State& state) {
  Loop loop;
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    ibv_dereg_mr(ibv_reg_mr(loop.from.pd(), loop.from.memory(), bytes, kAccess));
  }
}
BENCHMARK(register_memory)->Arg(4 << 10)->Arg(1 << 20);

}  // namespace

BENCHMARK_MAIN();
