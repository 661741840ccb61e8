// SPDX-License-Identifier: Apache-2.0
//
// The devices that NCCL sees, by NCCL's number. Each consists of one or more RDMA ports, its
// members. A comm on a device with several members uses each of them as a rail.
//
// The first devices exist from the start. They are the ports of this host, or groups of ports that
// the plugin itself has merged (BEELINE_RAILS). NCCL may merge some of the first devices
// (makeVDevice), and each merged device gets the next number.
//
// Lifecycle: a device that has been handed out exists as long as this table, because NCCL keeps the
// pointers to its texts. Threads: any. Reading takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "plugin/device/device.h"
#include "plugin/device/rail_devices.h"

namespace beeline {

struct NetDevice {
  int index = 0;                       // NCCL's number
  std::string name;                    // "beeline_mlx5_0", "beeline_mlx5_0+mlx5_1": unique
  int speed_mbps = 0;                  // the sum of its members'
  std::vector<const Device*> members;  // by rail
  std::vector<int> merged;  // NCCL's numbers of the devices that it has merged; otherwise its own

  RailDevices rails() const noexcept { return members; }
};

// "device 4, beeline_mlx5_0+mlx5_1, 200G: mlx5_0 port 1, mlx5_1 port 1": for the log.
std::string describe(const NetDevice& device);

class NetDevices {
 public:
  // NCCL has room for fewer.
  static constexpr std::size_t kMost = 256;

  // `groups` are the members of the first devices.
  explicit NetDevices(const std::vector<std::vector<const Device*>>& groups);
  NetDevices(const NetDevices&) = delete;
  NetDevices& operator=(const NetDevices&) = delete;

  // The number of devices that NCCL is told. Their numbers are 0 to count() - 1.
  std::size_t count() const noexcept { return count_.load(std::memory_order_acquire); }

  // Null: there is no such device. Also finds devices that forget_merged() has left uncounted.
  const NetDevice* find(int index) const noexcept;

  // The device whose rails a comm uses; null if it is none of this table.
  const NetDevice* with_rails(RailDevices rails) const noexcept;

  // Merges first devices, given by their numbers. Devices that are merged already are found again.
  // kInvalid: the numbers make no sense. kUnsupported: these devices cannot be merged.
  Outcome<const NetDevice*> merge(std::span<const int> indices);

  // Counts only the first devices again. An NCCL that has unloaded its plugins takes the number of
  // devices that it finds after the next init for that of the physical ones, and then merges them
  // anew. A device that is merged as before gets the number that it had before.
  void forget_merged() noexcept { count_.store(first_count_, std::memory_order_release); }

 private:
  Outcome<std::vector<const Device*>> ports_of(std::span<const int> indices) const;
  const NetDevice* add(std::size_t place, NetDevice device);

  std::size_t first_count_;
  std::atomic<std::size_t> count_{0};
  std::array<std::atomic<const NetDevice*>, kMost> places_{};  // by number
  std::mutex mutex_;                                           // for those who merge
  std::vector<std::unique_ptr<const NetDevice>> all_;          // also those that lost their place
};

}  // namespace beeline
