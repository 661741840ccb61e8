// SPDX-License-Identifier: Apache-2.0
//
// A device is one RDMA port: its properties as the scan has found them, and the open verbs device,
// which all ports of that verbs device share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/check/assert.h"
#include "plugin/device/gid.h"
#include "plugin/device/port_history.h"
#include "plugin/verbs/handles.h"
#include "plugin/wire/port_types.h"

namespace beeline {

using wire::LinkLayer;
using wire::Transport;
const char* to_string(Transport transport) noexcept;

struct Capabilities {
  bool immediate = true;          // RDMA_WRITE_WITH_IMM: all but iWARP
  bool adaptive_routing = false;  // large writes are notified by a packet of their own
  bool relaxed_ordering = false;  // payload may be registered with relaxed ordering
  bool dmabuf = false;            // the library supports it; the driver may still refuse it
  std::uint32_t max_msg_bytes = 0;
  int max_rd_atomic = 0;  // outstanding READs, in each direction
};

// Attributes of a port that may change while a job runs.
struct PortFacts {
  ibv_port_state state = IBV_PORT_NOP;
  ibv_mtu active_mtu = IBV_MTU_1024;
  std::uint16_t lid = 0;
  std::uint32_t speed_mbps = 0;           // 0: unknown
  std::vector<std::uint16_t> pkeys = {};  // by index; 0: empty entry
  std::vector<GidEntry> gids = {};        // the valid entries, by index

  bool is_active() const noexcept {
    return state == IBV_PORT_ACTIVE || state == IBV_PORT_ACTIVE_DEFER;
  }
};

// An open verbs device with its one protection domain.
// Lifecycle: as long as its DeviceTable. Threads: any.
class DeviceContext {
 public:
  DeviceContext(verbs::Context context, std::string ibdev, int index)
      : context_(std::move(context)), ibdev_(std::move(ibdev)), index_(index) {}
  ~DeviceContext() { BL_ASSERT(thread_domains_ == 0, "its thread domains are destroyed first"); }

  const verbs::Api& api() const noexcept { return context_.api(); }
  ibv_context* raw() const noexcept { return context_.get(); }
  const std::string& ibdev() const noexcept { return ibdev_; }
  int index() const noexcept { return index_; }  // unique in the process

  // The first call allocates it. It is freed with the table.
  Result<ibv_pd*> pd();

  // The number of thread domains that exist at present.
  std::atomic<int>& thread_domains() noexcept { return thread_domains_; }

  // Whether it was removed from the host or has a fatal error. It stays so: a device that returns
  // is opened again, as another DeviceContext.
  bool is_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }
  void set_gone() noexcept { gone_.store(true, std::memory_order_relaxed); }

 private:
  friend class DeviceScan;  // sets index_

  verbs::Context context_;
  std::string ibdev_;
  int index_;
  std::mutex mutex_;
  verbs::Pd pd_;
  std::atomic<int> thread_domains_{0};
  std::atomic<bool> gone_{false};
};

struct Device {
  int index = 0;      // in the table
  std::string name;   // "beeline_mlx5_0", "beeline_mlx5_0_p2": unique. It must differ from ibdev,
                      // which NCCL's own transports use for their topology node
  std::string ibdev;  // "mlx5_0"
  std::uint8_t port = 1;
  LinkLayer link_layer = LinkLayer::kEthernet;
  Transport transport = Transport::kRoce;
  std::uint64_t guid = 0;  // of the card, which may have several PCI functions; host order
  int card_port = 1;       // unique among the ports with the same `guid`
  std::string netdev;      // its network interface; empty for InfiniBand
  std::string pci_path;    // a directory of sysfs without symbolic links; may be empty
  std::string card_path;   // the card's first PCI function, for NCCL's topology
  int numa_node = -1;
  int rail = -1;  // from the filter
  int plane = -1;
  Capabilities caps;
  PortFacts facts;  // at the time of the scan; DeviceTable::read_port reads them again
  DeviceContext* context = nullptr;
  // Its events since it was opened; never null.
  std::shared_ptr<PortHistory> history = std::make_shared<PortHistory>();
  // The same port after the device was removed, came back and was opened again; null until then.
  using Successor = std::atomic<const Device*>;
  std::shared_ptr<Successor> successor = std::make_shared<Successor>(nullptr);

  const verbs::Api& api() const noexcept { return context->api(); }
  // The last successor, or the device itself.
  const Device& newest() const noexcept;
};

// "mlx5_0 port 1": its name in messages.
std::string label(const Device& device);
std::string port_name(const Device& device);  // "mlx5_0:1"

}  // namespace beeline
