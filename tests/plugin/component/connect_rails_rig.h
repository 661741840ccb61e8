// SPDX-License-Identifier: Apache-2.0
//
// A host with sixteen devices, which all reach each other, and two processes on it, as far as the
// control planes can tell. One listens with the devices a0, a1 and so on; the other connects with
// b0, b1 and so on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/component/connect_rig.h"

namespace beeline::test {

// softnic's verbs, in which one device refuses to move a queue pair to a state (RESET: to create
// one), and with a count of the existing queue pairs. It must outlive the device tables that scan()
// returns.
class RefusingVerbs {
 public:
  RefusingVerbs();
  RefusingVerbs(const RefusingVerbs&) = delete;
  RefusingVerbs& operator=(const RefusingVerbs&) = delete;

  // From now on. `device` "": none.
  static void refuse(const std::string& device, ibv_qp_state state, int sys_errno);
  static int queue_pairs();

  const verbs::Api& api() const noexcept { return api_; }

 private:
  verbs::Api api_;
};

// Devices 0 to 7 are a0 to a7, and 8 to 15 are b0 to b7.
softnic::FabricSpec sixteen_devices();

struct RailsRig {
  explicit RailsRig(const softnic::FabricSpec& spec = sixteen_devices());
  RailsRig(const RailsRig&) = delete;
  RailsRig& operator=(const RailsRig&) = delete;

  // Makes the processes anew, with so many queue pairs on each rail.
  void set_qps_per_rail(int listening, int connecting);
  // Makes them anew. Their ends can agree about paths later.
  void set_recovery();
  // A comm between the first `listening` devices of one process and the first `connecting` of the
  // other.
  CommPair join(std::size_t listening, std::size_t connecting);
  // The error of a connect that must fail, while accept() goes on waiting. Each end must log
  // `line`, the listening one before its listener is closed: closing it ends what is being
  // accepted.
  Error join_error(std::size_t listening, std::size_t connecting, const std::string& line);
  struct Errors {
    Error of_connect;
    Error of_accept;
  };
  Errors join_errors(std::size_t listening, std::size_t connecting);

  RailDevices rails_of_a(std::size_t count) const { return {here_.data(), count}; }
  RailDevices rails_of_b(std::size_t count) const { return {there_.data(), count}; }

  RefusingVerbs verbs;
  TestFabric fabric;
  std::unique_ptr<DeviceTable> table;
  LogCapture log;
  std::unique_ptr<ControlPlane> a;
  std::unique_ptr<ControlPlane> b;

 private:
  // Calls connect() until it fails.
  Error connect_error(Ticket& ticket, std::size_t connecting);

  std::vector<const Device*> here_;
  std::vector<const Device*> there_;
};

}  // namespace beeline::test
