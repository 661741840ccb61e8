// SPDX-License-Identifier: Apache-2.0
// Layout of the shared segment that every process of a fabric maps: hosts, devices, ports and the
// list of processes. Queue pairs, completion queues and memory regions are in the arena of their
// process (arena.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "softnic/fabric/shared.h"
#include "softnic/spec/fabric_limits.h"
#include "softnic/spec/fabric_spec.h"

namespace softnic {

inline constexpr std::uint64_t kFabricMagic = 0x736f66746e696331;  // "softnic1"
inline constexpr std::uint32_t kLayoutVersion = 9;
inline constexpr std::uint32_t kMaxSlots = 512;  // processes at a time; 9 bits of every QPN and key
inline constexpr std::uint64_t kForEver = INT64_MAX;   // the end of a pause until `resume`
inline constexpr std::uint32_t kDefaultPkey = 0xffff;  // full member of the default partition

// A GID can change while the fabric runs. Readers load the words separately; after a change,
// FabricHeader::generation makes them load the words again.
struct GidRecord {
  Shared<std::uint64_t> high;  // `high` and `low`: bytes 0..7 and 8..15, in network order
  Shared<std::uint64_t> low;
  Shared<std::uint32_t> state;  // 0: empty, else 1 + GidKind
};

// Conditions of a port that a requester must handle for each message. Zero on a port without any.
enum PortFault : std::uint32_t {
  kFaultDown = 1u << 0,
  kFaultShaped = 1u << 1,
  kFaultError = 1u << 2,
  kFaultCorrupt = 1u << 3,
  kFaultLossy = 1u << 4,
  kFaultPaused = 1u << 5,     // no data moves and no timeout runs
  kFaultRemoved = 1u << 6,    // the device was removed
  kFaultBlackHole = 1u << 7,  // all packets are lost, while the port is reported as up
  kFaultDiscard = 1u << 8,
};

struct PortRecord {
  char network[kNameLen];
  char netdev[16];
  std::uint32_t gbps;
  std::uint32_t mtu;
  std::uint32_t gid_table_len;
  Shared<std::uint32_t> lid;  // InfiniBand
  LinkLayer link_layer;
  std::uint64_t file_rate;  // rate and latency of the fabric file, which `reset` restores
  std::uint64_t file_latency;
  Shared<std::uint32_t> faults;         // PortFault bits
  Shared<std::uint32_t> reported_down;  // the state that the last port event reported
  Shared<std::uint64_t> rate_bytes_s;   // 0: unlimited
  Shared<std::uint64_t> latency_ns;
  Shared<std::uint64_t> jitter_ns;        // maximum extra latency of a message
  Shared<std::uint32_t> loss_ppm;         // of the pieces that this port sends or receives
  Shared<std::uint32_t> sent_loss_ppm;    // of those that it sends
  Shared<std::uint64_t> lost_over_bytes;  // messages that are longer are lost; 0: none is
  Shared<std::uint64_t> paused_until_ns;  // on the monotonic clock; 0: not paused; kForEver
  Shared<std::uint32_t> pkey;             // the one entry of the table
  Shared<std::uint32_t> reported_pkey;    // the P_Key that the last event reported
  Shared<std::uint64_t> egress_free_ns;   // when all bytes handed to the wire so far will be sent
  Shared<std::uint64_t> ingress_free_ns;
  Shared<std::uint64_t> sent_bytes;       // payload that arrived, while a rate or latency was set
  Shared<std::uint64_t> error_countdown;  // the work request that takes it to 0 fails
  Shared<std::uint32_t> error_status;     // with this ibv_wc_status
  Shared<std::uint64_t> corrupt_countdown;
  Shared<std::uint64_t> discard_countdown;
  Shared<std::uint64_t> discard_bytes;  // it counts messages of at most this length
  GidRecord gids[kMaxGids];
};

struct DeviceRecord {
  char name[kNameLen];
  std::uint32_t host;
  std::uint32_t index_on_host;
  std::uint64_t guid;
  std::uint32_t port_count;
  Shared<std::uint32_t> removals;  // odd: removed; contexts opened at another count are dead
  Shared<std::uint32_t> reported_removals;   // the count that the last fatal event reported
  Shared<std::uint32_t> refuses_to_break;    // modify_qp to ERR is refused
  Shared<std::uint32_t> refuses_gpu_memory;  // also as a dma-buf
  Shared<std::uint32_t> hides_events;        // of its ports
  Shared<std::uint64_t> command_ns;          // as HazardRecord::command_ns
  PortRecord ports[kMaxPorts];
};

struct HostRecord {
  char name[kNameLen];
  std::uint32_t first_device;
  std::uint32_t device_count;
};

// The place of one process in a fabric. A process takes a free slot and locks the byte of that slot
// in the file `seats`; the kernel releases the lock when the process ends, however it ends. A slot
// together with the epoch of its owner is called a seat: the slot is reused, the seat never is.
struct SlotRecord {
  Shared<std::uint64_t> epoch;  // new for every process that takes the slot; 0: never used, or left
  Shared<std::uint32_t> pid;
  Shared<std::uint32_t> host;
};

// A seat in one word, as a lock stores its holder.
inline std::uint32_t seat_word(std::uint32_t slot, std::uint64_t epoch) noexcept {
  return static_cast<std::uint32_t>(epoch * kMaxSlots) | slot;
}

// Behavior that the specification permits and hardware rarely shows. It makes programs fail that
// depend on the usual behavior.
struct HazardRecord {
  Shared<std::uint32_t> scatter;  // payload is written out of order, but before its completion
  // Writes into dma-buf memory are not visible before a READ of that memory or a flush by softgpu.
  Shared<std::uint32_t> hide;
  Shared<std::uint64_t> bunch_ns;  // completions appear at multiples of this time; 0: at once
  // The time of a command that creates, changes or destroys a queue pair, a completion queue or a
  // registration.
  Shared<std::uint64_t> command_ns;
};

struct FabricHeader {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t host_count;
  std::uint32_t device_count;
  double clock_scale;
  std::uint64_t seed;       // of all random decisions of the fabric
  std::int64_t started_ns;  // when the fabric was created, on the monotonic clock
  HazardRecord hazards;
  Shared<std::uint32_t> generation;  // incremented by every change that invalidates cached routes
  Shared<std::uint64_t> next_epoch;
  SlotRecord slots[kMaxSlots];
  HostRecord hosts[kMaxHosts];
  DeviceRecord devices[kMaxDevices];
};

}  // namespace softnic
