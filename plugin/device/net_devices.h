// SPDX-License-Identifier: Apache-2.0
//
// The devices that NCCL sees, by NCCL's number. Each consists of one or more RDMA ports, its
// members. A comm on a device with several members uses each of them as a rail.
//
// The first devices exist from the start. They are the ports of this host, or groups of ports that
// the plugin itself has merged (BEELINE_RAILS). NCCL may merge some of the first devices
// (makeVDevice), and each merged device gets the next number.
//
// Lifecycle: a device exists as long as this table, because NCCL keeps the pointers to its texts.
// Threads: any. Reading takes no lock.
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

  // The number of all devices. Their numbers are 0 to count() - 1.
  std::size_t count() const noexcept { return count_.load(std::memory_order_acquire); }

  // The number of those that NCCL has not merged.
  std::size_t first_count() const noexcept { return first_count_; }

  // Null: there is no such device.
  const NetDevice* find(int index) const noexcept;

  // The device whose rails a comm uses; null if it is none of this table.
  const NetDevice* with_rails(RailDevices rails) const noexcept;

  // Merges first devices, given by their numbers. Devices that are merged already are found again.
  // kInvalid: the numbers make no sense. kUnsupported: these devices cannot be merged.
  Outcome<const NetDevice*> merge(std::span<const int> indices);

 private:
  Outcome<std::vector<const Device*>> ports_of(std::span<const int> indices) const;
  const NetDevice* add(std::vector<const Device*> members, std::vector<int> merged);

  std::size_t first_count_;
  std::mutex mutex_;                                         // for those who merge
  std::array<std::unique_ptr<const NetDevice>, kMost> all_;  // by number; constant below count_
  std::atomic<std::size_t> count_{0};
};

}  // namespace beeline
