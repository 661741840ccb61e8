// SPDX-License-Identifier: Apache-2.0
//
// plugin/verbs and plugin/device on a softnic fabric: loads libibverbs as the plugin does, scans
// devices, and connects queue pairs with the plugin's functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plugin/device/device_table.h"
#include "plugin/memory/control_block.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/qp_steps.h"
#include "tests/support/verbs_fixture.h"

namespace beeline::test {

// softnic's libibverbs, by dlopen; loaded once.
const verbs::Api& softnic_api();

// A fabric file of tests/fabrics.
softnic::FabricSpec fabric_file(const std::string& name);

// Options with this device filter and the sysfs tree of the host.
DeviceOptions device_options(const TestFabric& fabric, const std::string& host = "h0",
                             const std::string& filter = "");

// Scans as a process on `host`. Throws when that fails.
std::unique_ptr<DeviceTable> scan(const TestFabric& fabric, const std::string& host = "h0",
                                  const std::string& filter = "");

const Device& find_device(const DeviceTable& table, const std::string& ibdev, int port = 1);

// Unwraps, or throws the error's description.
template <class T>
T must(Result<T> result) {
  if (!result) throw MustError(describe(result.error()));
  return *std::move(result);
}
inline void must(const Status& status) {
  if (!status) throw MustError(describe(status.error()));
}

// One end of a connection: a CQ, a QP and a page that the peer may write.
struct End {
  explicit End(const Device& device, std::uint32_t max_inline = 0);

  const Device& device;
  ControlBlock memory;
  verbs::Cq cq;
  verbs::Qp qp;
  ibv_qp_cap granted = {};
  std::uint32_t psn = verbs::random_psn();
};

// Moves both queue pairs from RESET to RTS, with GIDs chosen for the pair.
void connect(End& a, End& b);

// Writes `length` bytes from the start of `from`'s page to the start of `to`'s.
void post_write(End& from, End& to, std::uint32_t length);
// The next completion of the end's CQ.
ibv_wc wait_completion(End& end);

}  // namespace beeline::test
