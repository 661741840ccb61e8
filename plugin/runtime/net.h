// SPDX-License-Identifier: Apache-2.0
//
// NCCL's network calls with the plugin's types. plugin/abi translates each version of NCCL's
// interface to these functions.
//
// Threads: those of NCCL; comm.h says which calls may run at the same time. No call blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/result.h"
#include "plugin/connect/control/control_plane.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"

namespace beeline::net {

// A device as NCCL sees it. The texts live as long as the process.
struct Properties {
  const char* name = "";
  const char* pci_path = nullptr;  // null: unknown
  std::uint64_t guid = 0;
  int speed_mbps = 0;
  int port = 0;
  int rail = -1;   // -1: unknown, or not the same for all members of a merged device
  int plane = -1;  // the same
  // NCCL's numbers of the devices that it has merged into this one; otherwise its own number.
  std::span<const int> members;
  // Of GPU memory.
  bool takes_pointers = false;
  bool takes_dmabufs = false;
  bool force_flush = false;
  // A handle may be used by other comms of the device.
  bool handles_are_global = false;
};

// NCCL has called init. If the thread now calls device_count(), NCCL wants to know the number of
// the devices that it may merge (docs/decisions/0020-merged-devices.md).
void note_init() noexcept;

// The number of devices, also of those that NCCL has merged. Right after init it is without these.
std::size_t device_count() noexcept;
// kInvalid: there is no such device.
Result<Properties> properties(int device) noexcept;
// Merges devices to one, and returns its number. If it is merged already, nothing changes.
Result<int> merge(std::span<const int> devices);

Result<Listener*> listen(int device, HandleBytes handle, const CommSettings& settings = {});
void close(Listener* listener) noexcept;
// NCCL has called finalize for this owner: frees what it has left unfinished.
void reclaim(OwnerId owner) noexcept;

// Null: not connected yet; NCCL calls again.
Result<Comm*> connect(int device, HandleBytes handle, const CommSettings& settings = {});
Result<Comm*> accept(Listener& listener);
void close(Comm* comm) noexcept;

Result<MemoryHandle*> register_memory(Comm& comm, const Buffer& buffer);
// When it returns, no NIC can access the memory through this handle.
void deregister_memory(MemoryHandle* memory) noexcept;

}  // namespace beeline::net
