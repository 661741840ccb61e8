// SPDX-License-Identifier: Apache-2.0
//
// A device is one RDMA port. What is known of it from the scan, and the open verbs device behind
// it, which its other ports share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugin/device/gid.h"
#include "plugin/device/port_news.h"
#include "plugin/verbs/handles.h"
#include "plugin/wire/port_types.h"

namespace beeline {

using wire::LinkLayer;
using wire::Transport;
const char* to_string(LinkLayer layer) noexcept;
const char* to_string(Transport transport) noexcept;

struct Capabilities {
  bool immediate = true;          // WRITE_WITH_IMM: all but iWARP
  bool adaptive_routing = false;  // a big write needs its notification in a packet of its own
  bool relaxed_ordering = false;  // payload may be registered so
  bool dmabuf = false;            // the library can; whether the driver can shows the first attempt
  std::uint32_t max_msg_bytes = 0;
  int max_qp_wr = 0;
  int max_sge = 0;
  int max_cqe = 0;
  int max_rd_atomic = 0;  // READs open at once, either way
};

// What changes while a job runs.
struct PortFacts {
  ibv_port_state state = IBV_PORT_NOP;
  ibv_mtu active_mtu = IBV_MTU_1024;
  std::uint16_t lid = 0;
  std::uint16_t sm_lid = 0;
  std::uint8_t lmc = 0;
  std::uint32_t speed_mbps = 0;           // 0: unknown
  std::vector<std::uint16_t> pkeys = {};  // by index; 0 is an empty place
  std::vector<GidEntry> gids = {};        // the filled places, by index

  bool is_active() const noexcept {
    return state == IBV_PORT_ACTIVE || state == IBV_PORT_ACTIVE_DEFER;
  }
};

// An open verbs device and its one protection domain.
// Lifecycle: lives as long as its DeviceTable. Threads: any.
class DeviceContext {
 public:
  DeviceContext(verbs::Context context, std::string ibdev, int index)
      : context_(std::move(context)), ibdev_(std::move(ibdev)), index_(index) {}

  const verbs::Api& api() const noexcept { return context_.api(); }
  ibv_context* raw() const noexcept { return context_.get(); }
  const std::string& ibdev() const noexcept { return ibdev_; }
  int index() const noexcept { return index_; }  // dense, from 0: for what is kept per context

  // Made by the first caller. Stays until the table dies.
  Result<ibv_pd*> pd();

  // How many thread domains of this process it has now.
  std::atomic<int>& thread_domains() noexcept { return thread_domains_; }

  // Removed from the host, or failed for good. It does not come back: a device that returns is one
  // that has to be opened anew.
  bool is_gone() const noexcept { return gone_.load(std::memory_order_relaxed); }
  void set_gone() noexcept { gone_.store(true, std::memory_order_relaxed); }

 private:
  friend class DeviceScan;  // numbers the contexts last

  verbs::Context context_;
  std::string ibdev_;
  int index_;
  std::mutex mutex_;
  verbs::Pd pd_;
  std::atomic<int> thread_domains_{0};
  std::atomic<bool> gone_{false};
};

struct Device {
  int index = 0;      // its place in the table, which is NCCL's number for it
  std::string name;   // "beeline_mlx5_0", "beeline_mlx5_0_p2": unique, and never the plain ibdev,
                      // whose topology node NCCL's built-in transports own
  std::string ibdev;  // "mlx5_0"
  std::uint8_t port = 1;
  LinkLayer link_layer = LinkLayer::kEthernet;
  Transport transport = Transport::kRoce;
  std::uint64_t guid = 0;  // of the card, which may be several PCI functions; host order
  int card_port = 1;       // unique together with `guid`: the ports of all the card's functions
  std::string netdev;      // the network interface behind it; empty for InfiniBand
  std::string pci_path;    // a real directory of sysfs; empty for a device without one
  std::string card_path;   // the card's first PCI function: where NCCL is to place the device
  int numa_node = -1;
  int rail = -1;  // from the filter
  int plane = -1;
  Capabilities caps;
  PortFacts facts;  // at the scan; DeviceTable::read_port reads again
  DeviceContext* context = nullptr;
  std::shared_ptr<PortNews> news = std::make_shared<PortNews>();  // since the scan; never null

  const verbs::Api& api() const noexcept { return context->api(); }
};

// "mlx5_0 port 1": how log lines call a device.
std::string label(const Device& device);

}  // namespace beeline
