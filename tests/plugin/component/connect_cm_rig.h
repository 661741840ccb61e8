// SPDX-License-Identifier: Apache-2.0
//
// Two processes, as far as the control planes can tell, whose queue pairs are connected by a fake
// librdmacm over softnic.
#pragma once

#include <array>
#include <climits>
#include <cstdint>
#include <memory>

#include "tests/plugin/component/connect_rig.h"
#include "tests/plugin/component/fake_rdmacm.h"

namespace beeline::test {

// softnic's verbs, with a list of the queue pairs, and with a look at the calls of two devices. It
// must outlive the device tables that scan() returns. There can be only one at a time.
class CmVerbs {
 public:
  CmVerbs();
  CmVerbs(const CmVerbs&) = delete;
  CmVerbs& operator=(const CmVerbs&) = delete;

  const verbs::Api& api() const noexcept { return api_; }
  static void watch(const Device& listening, const Device& connecting);
  static ibv_qp* find(const ibv_context* device, std::uint32_t qpn);

  // The listening end sees no completion before the connecting end has posted so many RDMA WRITEs
  // or the completions are released.
  static void hold_completions(int writes = INT_MAX);
  static void release_completions();
  // The next SEND of the listening end is delivered, but its completion is lost.
  static void lose_next_completion();
  // The queue pair of the lost completion. 0: none is lost yet.
  static std::uint32_t qpn_of_lost_completion();
  // RDMA WRITEs that the connecting end has posted.
  static int writes();
  // How often the connecting end has found no completion after it had found the first one.
  static int further_polls();

 private:
  verbs::Api api_;
};

// One process listens on softnic0, and the other connects from softnic1.
struct CmRig {
  explicit CmRig(bool listener_wishes = true, bool connector_wishes = true);
  CmRig(const CmRig&) = delete;
  CmRig& operator=(const CmRig&) = delete;

  void set_qps_per_rail(int count);
  // Both devices claim to be iWARP, where the kernel moves the queue pairs.
  void play_iwarp();
  CommPair join();
  // Calls connect until it fails.
  void fail_to_join();

  CmVerbs verbs;
  TestFabric fabric;
  std::unique_ptr<DeviceTable> table;
  Device here;
  Device there;
  std::array<const Device*, 1> here_only = {&here};
  std::array<const Device*, 1> there_only = {&there};
  FakeRdmacm fake{here, there};
  verbs::CmLibrary library{fake.api()};
  std::unique_ptr<ControlPlane> a;
  std::unique_ptr<ControlPlane> b;
};

ControlOptions cm_options(bool is_requested, verbs::CmLibrary* library);
bool has_completions(const Connection& end);

}  // namespace beeline::test
