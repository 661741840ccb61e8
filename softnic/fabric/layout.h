// SPDX-License-Identifier: Apache-2.0
// The fabric file: one shared segment that every process of a fabric maps. It holds what belongs to
// nobody in particular: hosts, devices, ports and the list of processes. What a process owns (queue
// pairs, completion queues, memory regions) lives in that process's arena (arena.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "softnic/fabric/shared.h"
#include "softnic/spec/fabric_limits.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

inline constexpr std::uint64_t kFabricMagic = 0x736f66746e696331;  // "softnic1"
inline constexpr std::uint32_t kLayoutVersion = 3;
inline constexpr std::uint32_t kMaxSlots = 512;  // processes at a time; 9 bits of every QPN and key
inline constexpr std::uint64_t kForEver = INT64_MAX;  // of a pause that lasts until `resume`
inline constexpr std::uint32_t kDefaultPkey =
    0xffff;  // the partition everybody is a full member of

// A GID can change while the fabric runs: readers take the words one by one and the generation
// (FabricHeader) tells them to look again.
struct GidRecord {
  Shared<std::uint64_t> high;  // bytes 0..7 and 8..15 as they stand in memory
  Shared<std::uint64_t> low;
  Shared<std::uint32_t> state;  // 0: empty, else 1 + GidKind
};

// Why a message on this port cannot take the direct way. Zero on an undisturbed port.
enum PortTrouble : std::uint32_t {
  kTroubleDown = 1u << 0,
  kTroubleShaped = 1u << 1,
  kTroubleError = 1u << 2,
  kTroubleCorrupt = 1u << 3,
  kTroubleLossy = 1u << 4,
  kTroubleStill = 1u << 5,  // paused: nothing moves, and nothing times out
  kTroubleGone = 1u << 6,   // the device was removed
  kTroubleHole = 1u << 7,   // black hole: all packets are lost, and the port shows as up
};

struct PortRecord {
  char network[kNameLen];
  char netdev[16];
  std::uint32_t gbps;
  std::uint32_t mtu;
  std::uint32_t gid_table_len;
  std::uint32_t lid;
  LinkLayer link_layer;
  std::uint64_t file_rate;  // rate and latency as the fabric file has them, for `reset`
  std::uint64_t file_latency;
  Shared<std::uint32_t> trouble;       // PortTrouble bits
  Shared<std::uint32_t> told_down;     // the state that the last port event told of
  Shared<std::uint64_t> rate_bytes_s;  // 0: unlimited
  Shared<std::uint64_t> latency_ns;
  Shared<std::uint64_t> jitter_ns;        // each message takes up to this much longer
  Shared<std::uint32_t> loss_ppm;         // of the pieces that leave or enter here
  Shared<std::uint64_t> paused_until_ns;  // on the monotonic clock; 0: not paused; kForEver
  Shared<std::uint32_t> pkey;             // the one entry of the table
  Shared<std::uint32_t> told_pkey;        // the one that the last event told of
  Shared<std::uint64_t> egress_free_ns;   // when the wire has sent what was handed to it so far
  Shared<std::uint64_t> ingress_free_ns;
  Shared<std::uint64_t> error_countdown;  // the work request that takes it to 0 fails
  Shared<std::uint32_t> error_status;     // with this ibv_wc_status
  Shared<std::uint64_t> corrupt_countdown;
  GidRecord gids[kMaxGids];
};

struct DeviceRecord {
  char name[kNameLen];
  std::uint32_t host;
  std::uint32_t index_on_host;
  std::uint64_t guid;
  std::uint32_t port_count;
  Shared<std::uint32_t> removals;       // odd: removed; contexts opened at another count are dead
  Shared<std::uint32_t> told_removals;  // the count that the last fatal event told of
  Shared<std::uint32_t> refuses_to_break;  // modify_qp to ERR is refused
  PortRecord ports[kMaxPorts];
};

struct HostRecord {
  char name[kNameLen];
  std::uint32_t first_device;
  std::uint32_t device_count;
};

// A process's seat. Alive while it holds its byte of the `seats` lock file; the kernel lets go of
// that lock when the process ends, however it ends.
struct SlotRecord {
  Shared<std::uint64_t> epoch;  // new for every process that takes the slot; 0: never used, or left
  Shared<std::uint32_t> pid;
  Shared<std::uint32_t> host;
};

// Slot and epoch in one word: who holds a lock, told apart from the slot's earlier owners.
inline std::uint32_t seat_word(std::uint32_t slot, std::uint64_t epoch) noexcept {
  return static_cast<std::uint32_t>(epoch * kMaxSlots) | slot;
}

// What hardware is free to do and rarely does. Programs that work by luck alone fail here.
struct HazardRecord {
  Shared<std::uint32_t> scatter;  // payload is placed out of order, though before its completion
  Shared<std::uint32_t>
      hide;  // writes into dma-buf memory stay invisible until a READ of that memory
  Shared<std::uint64_t> bunch_ns;  // completions wait for the next multiple of this; 0: at once
};

struct FabricHeader {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t host_count;
  std::uint32_t device_count;
  double clock_scale;
  std::uint64_t seed;       // of everything random that the fabric does
  std::int64_t started_ns;  // fabric time 0, on the monotonic clock
  HazardRecord hazards;
  Shared<std::uint32_t> generation;  // bumped by every change that a cached route must notice
  Shared<std::uint64_t> next_epoch;
  SlotRecord slots[kMaxSlots];
  HostRecord hosts[kMaxHosts];
  DeviceRecord devices[kMaxDevices];
};

}  // namespace softnic
