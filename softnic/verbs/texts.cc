// SPDX-License-Identifier: Apache-2.0
// The calls that need no device: names of enumerators, rate conversions, and reading sysfs. The
// texts are those of libibverbs, because people search for them.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/fd.h"

namespace {

struct Rate {
  ibv_rate code;
  int multiple;  // of 2.5 Gb/s; 0 if it is not a multiple
  int mbps;
};

constexpr std::array kRates = {
    Rate{IBV_RATE_2_5_GBPS, 1, 2500},   Rate{IBV_RATE_5_GBPS, 2, 5000},
    Rate{IBV_RATE_10_GBPS, 4, 10000},   Rate{IBV_RATE_14_GBPS, 0, 14062},
    Rate{IBV_RATE_20_GBPS, 8, 20000},   Rate{IBV_RATE_25_GBPS, 0, 25781},
    Rate{IBV_RATE_28_GBPS, 0, 28125},   Rate{IBV_RATE_30_GBPS, 12, 30000},
    Rate{IBV_RATE_40_GBPS, 16, 40000},  Rate{IBV_RATE_50_GBPS, 20, 53125},
    Rate{IBV_RATE_56_GBPS, 0, 56250},   Rate{IBV_RATE_60_GBPS, 24, 60000},
    Rate{IBV_RATE_80_GBPS, 32, 80000},  Rate{IBV_RATE_100_GBPS, 0, 103125},
    Rate{IBV_RATE_112_GBPS, 0, 112500}, Rate{IBV_RATE_120_GBPS, 48, 120000},
    Rate{IBV_RATE_168_GBPS, 0, 168750}, Rate{IBV_RATE_200_GBPS, 0, 206250},
    Rate{IBV_RATE_300_GBPS, 0, 309375}, Rate{IBV_RATE_400_GBPS, 0, 425000},
    Rate{IBV_RATE_600_GBPS, 0, 637500},
};

}  // namespace

extern "C" {

const char* ibv_node_type_str(ibv_node_type type) {
  static constexpr std::array kNames = {"unknown",           "InfiniBand channel adapter",
                                        "InfiniBand switch", "InfiniBand router",
                                        "iWARP NIC",         "usNIC",
                                        "usNIC over UDP",    "unspecified"};
  return static_cast<std::size_t>(type) < kNames.size() ? kNames[static_cast<std::size_t>(type)]
                                                        : "invalid node type";
}

const char* ibv_port_state_str(ibv_port_state state) {
  static constexpr std::array kNames = {"no state change", "down",   "init",
                                        "armed",           "active", "active defer"};
  return static_cast<std::size_t>(state) < kNames.size() ? kNames[static_cast<std::size_t>(state)]
                                                         : "invalid state";
}

const char* ibv_event_type_str(ibv_event_type event) {
  static constexpr std::array kNames = {
      "CQ error",
      "local work queue catastrophic error",
      "invalid request local work queue error",
      "local access violation work queue error",
      "communication established",
      "send queue drained",
      "path migrated",
      "path migration request error",
      "local catastrophic error",
      "port active",
      "port error",
      "LID change",
      "P_Key change",
      "SM change",
      "SRQ catastrophic error",
      "SRQ limit reached",
      "last WQE reached",
      "client reregistration",
      "GID table change",
      "work queue fatal",
  };
  return static_cast<std::size_t>(event) < kNames.size() ? kNames[static_cast<std::size_t>(event)]
                                                         : "unknown";
}

const char* ibv_wc_status_str(ibv_wc_status status) {
  static constexpr std::array kNames = {
      "success",
      "local length error",
      "local QP operation error",
      "local EE context operation error",
      "local protection error",
      "Work Request Flushed Error",
      "memory management operation error",
      "bad response error",
      "local access error",
      "remote invalid request error",
      "remote access error",
      "remote operation error",
      "transport retry counter exceeded",
      "RNR retry counter exceeded",
      "local RDD violation error",
      "remote invalid RD request",
      "aborted error",
      "invalid EE context number",
      "invalid EE context state",
      "fatal error",
      "response timeout error",
      "general error",
      "tag matching error",
      "tag matching, incomplete rendezvous",
  };
  return static_cast<std::size_t>(status) < kNames.size() ? kNames[static_cast<std::size_t>(status)]
                                                          : "unknown";
}

int ibv_rate_to_mult(ibv_rate code) {
  for (const Rate& rate : kRates) {
    if (rate.code == code && rate.multiple != 0) return rate.multiple;
  }
  return -1;
}

ibv_rate mult_to_ibv_rate(int multiple) {
  for (const Rate& rate : kRates) {
    if (rate.multiple == multiple && multiple != 0) return rate.code;
  }
  return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate code) {
  for (const Rate& rate : kRates) {
    if (rate.code == code) return rate.mbps;
  }
  return -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& rate : kRates) {
    if (rate.mbps == mbps) return rate.code;
  }
  return IBV_RATE_MAX;
}

const char* ibv_get_sysfs_path() {
  const char* root = std::getenv("BEELINE_SYSFS_ROOT");
  return root != nullptr ? root : "/sys";
}

int ibv_read_sysfs_file(const char* dir, const char* file, char* buffer, std::size_t size) {
  const std::string path = std::string(dir) + "/" + file;
  const beeline::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t length = fd && size != 0 ? ::read(fd.get(), buffer, size) : -1;
  if (length <= 0) return -1;
  // The trailing newline is removed. If there is none and the buffer is full, there is no
  // terminator.
  if (buffer[length - 1] == '\n') {
    buffer[length - 1] = '\0';
    return static_cast<int>(length - 1);
  }
  if (static_cast<std::size_t>(length) < size) buffer[length] = '\0';
  return static_cast<int>(length);
}

}  // extern "C"
