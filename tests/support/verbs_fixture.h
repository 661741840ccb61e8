// SPDX-License-Identifier: Apache-2.0
//
// Fixtures of verbs tests: a fabric of their own, open devices on it, and pairs of connected queue
// pairs. Only TestFabric depends on softnic; the rest is plain verbs.
#pragma once

#include <optional>
#include <string>

#include "softnic/fabric/fabric.h"
#include "tests/support/verbs_connect.h"
#include "tests/support/verbs_memory.h"
#include "tests/support/verbs_work.h"

namespace beeline::test {

// A fabric with a unique name. As long as it lives, every verbs call of this process uses it.
// Threads: created and destroyed by the test's main thread, since it sets environment variables.
class TestFabric {
 public:
  TestFabric();                             // hosts h0 and h1 with softnic0 and softnic1 each
  explicit TestFabric(double clock_scale);  // the same with faster timers
  explicit TestFabric(softnic::FabricSpec spec);
  TestFabric(const TestFabric&) = delete;
  TestFabric& operator=(const TestFabric&) = delete;
  ~TestFabric();

  const std::string& name() const noexcept { return name_; }
  const softnic::Fabric& fabric() const noexcept { return holder_->fabric(); }
  // Does what `softnic ctl` does: command("h0/softnic0", "down"), command("h0/softnic1:2",
  // "loss=1%"), or command("h0/softnic0", "remove") for the whole device.
  // softnic/fabric/port_command.h lists the commands.
  void command(const std::string& target, const std::string& text) const;
  // Releases the fabric, which then exists as long as a process uses it.
  void let_go() { holder_.reset(); }

  static std::string fresh_name();
  // Sets SOFTNIC_HOST, for the verbs calls that follow.
  static void choose_host(const std::string& host);

 private:
  explicit TestFabric(const softnic::FabricSpec* spec);

  std::string name_;
  std::optional<softnic::Holder> holder_;
};

class DeviceList {
 public:
  DeviceList() : devices_(ibv_get_device_list(&count_)) {}
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (devices_ != nullptr) ibv_free_device_list(devices_);
  }

  int count() const noexcept { return count_; }  // as ibv_get_device_list returned it
  ibv_device** get() const noexcept { return devices_; }
  ibv_device* operator[](int i) const noexcept { return devices_[i]; }

 private:
  int count_ = -1;
  ibv_device** devices_;
};

// Opens the device of this name. Throws if there is none.
ContextPtr open_device(const std::string& name);

struct QpShape {
  uint32_t send_depth = 64;
  uint32_t recv_depth = 64;
  uint32_t max_sge = 4;
  uint32_t max_inline = 64;
  bool all_signaled = false;
  int cqe = 256;
};

// An open device with a protection domain and a completion queue for each direction.
struct Nic {
  explicit Nic(const std::string& device, int cqe = 256);

  ContextPtr context;
  PdPtr pd;
  CqPtr send_cq;
  CqPtr recv_cq;
};

CqPtr make_cq(ibv_context* context, int cqe);
ibv_qp_init_attr init_attr(const Nic& nic, const QpShape& shape = {});
// Creates a queue pair in RESET. Writes the granted capacities to *cap.
QpPtr make_qp(const Nic& nic, const QpShape& shape = {}, ibv_qp_cap* cap = nullptr);

// A NIC with one queue pair.
struct Endpoint : Nic {
  explicit Endpoint(const std::string& device, const QpShape& shape = {})
      : Nic(device, shape.cqe), owned_qp(make_qp(*this, shape, &cap)), qp(owned_qp.get()) {}

  Buffer buffer(size_t size, int access = kAllAccess) { return {pd.get(), size, access}; }

  ibv_qp_cap cap{};
  QpPtr owned_qp;
  ibv_qp* qp;
};

struct PairOptions {
  double clock_scale = 1.0;
  QpShape shape = {};
  Wire wire = {};
};

// softnic0 and softnic1 of one host, connected, on a fabric of their own.
struct Pair {
  explicit Pair(const PairOptions& options = {})
      : fabric(options.clock_scale), a("softnic0", options.shape), b("softnic1", options.shape) {
    connect_both(a.qp, b.qp, options.wire);
  }

  TestFabric fabric;
  Endpoint a;
  Endpoint b;
};

}  // namespace beeline::test
