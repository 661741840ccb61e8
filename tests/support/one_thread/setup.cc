// SPDX-License-Identifier: Apache-2.0
#include "tests/support/one_thread/setup.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/must.h"

namespace beeline::bench {
namespace {

constexpr int kDevice = 0;

void print_warning(ncclDebugLogLevel level, unsigned long, const char* file, int line,
                   const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s:%d ", file, line);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

// nullverbs reads its parameters from the environment.
void name_what_is_not_default() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with("BEELINE_") || text.starts_with("NCCL_")) {
      std::fprintf(stderr, "not the default: %s\n", *variable);
    }
  }
}

}  // namespace

nccl::Net load(const std::string& plugin, const std::string& verbs, int abi) {
  name_what_is_not_default();
  ::setenv("BEELINE_IBVERBS_LIB", verbs.c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  auto loaded = nccl::load_plugin(plugin, abi);
  if (!loaded) throw test::MustError(loaded.error().text);
  nccl::Net net = *std::move(loaded);
  static ncclNetCommConfig_v12_t config{NCCL_NET_TRAFFIC_CLASS_UNDEF};
  BL_BENCH_CALL(net.calls.init(&net.ctx, 1, &config, print_warning, nullptr));
  int devices = 0;
  BL_BENCH_CALL(net.calls.devices(&devices));
  BL_MUST(devices > 0);
  ncclNetProperties_v12_t properties = {};
  BL_BENCH_CALL(net.calls.getProperties(kDevice, &properties));
  BL_MUST(std::string(properties.name).find("null0") != std::string::npos);
  return net;
}

const NullverbsReport& report_of(const std::string& verbs) {
  void* const library = ::dlopen(verbs.c_str(), RTLD_NOW | RTLD_NOLOAD);
  BL_MUST(library != nullptr);
  const auto report =
      reinterpret_cast<NullverbsReportFunction>(::dlsym(library, "nullverbs_report"));
  BL_MUST(report != nullptr);
  return *report();
}

CommPair connect(nccl::Net& net) {
  // Plugins store structures in it.
  alignas(std::max_align_t) std::array<char, NCCL_NET_HANDLE_MAXSIZE> handle{};
  ncclNetDeviceHandle_v12_t* on_device = nullptr;
  void* listener = nullptr;
  CommPair pair;
  BL_BENCH_CALL(net.calls.listen(net.ctx, kDevice, handle.data(), &listener));
  while (pair.send == nullptr || pair.recv == nullptr) {
    if (pair.send == nullptr) {
      BL_BENCH_CALL(net.calls.connect(net.ctx, kDevice, handle.data(), &pair.send, &on_device));
    }
    if (pair.recv == nullptr) {
      BL_BENCH_CALL(net.calls.accept(listener, &pair.recv, &on_device));
    }
    ::sched_yield();
  }
  BL_BENCH_CALL(net.calls.closeListen(listener));
  return pair;
}

void close(nccl::Net& net, const CommPair& pair) {
  BL_BENCH_CALL(net.calls.closeSend(pair.send));
  BL_BENCH_CALL(net.calls.closeRecv(pair.recv));
}

}  // namespace beeline::bench
