// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/agree.h"

#include <algorithm>
#include <cstdio>

namespace beeline {
namespace {

constexpr std::uint16_t kFullMember = 0x8000;
constexpr std::uint16_t kPartition = 0x7fff;

// Whether the entry may be used: it is not empty, and it is the one that is set if one is.
bool is_candidate(const PkeySide& side, std::size_t index) noexcept {
  const int partition = side.table[index] & kPartition;
  if (side.choice.value >= 0)
    return partition != 0 && partition == (side.choice.value & kPartition);
  if (side.choice.index >= 0 && index != static_cast<std::size_t>(side.choice.index)) return false;
  return partition != 0;
}

std::string key_text(int key) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", static_cast<unsigned>(key));
  return text;
}

std::string table_text(const PkeySide& side) {
  std::string text;
  for (std::size_t i = 0; i < side.table.size(); ++i) {
    if (!is_candidate(side, i)) continue;
    text += (text.empty() ? "" : ", ") + key_text(side.table[i]) + " at index " + std::to_string(i);
  }
  if (text.empty()) text = "none";
  if (side.choice.value >= 0) return text + " (" + key_text(side.choice.value) + " is set)";
  if (side.choice.index >= 0) text += " (index " + std::to_string(side.choice.index) + " is set)";
  return text;
}

// Not an error of the peer, so it is said before the tables of both ends are compared.
Outcome<void> check_value(const PkeySide& port) {
  if (port.choice.value < 0) return {};
  for (std::size_t i = 0; i < port.table.size(); ++i) {
    if (is_candidate(port, i)) return {};
  }
  return fail(std::string(port.who) + " has no partition key " + key_text(port.choice.value) +
              ", which NCCL_IB_PKEY_VALUE or BEELINE_PKEY_VALUE asks for; it has " +
              table_text({.table = port.table}));
}

bool is_mtu(int code) noexcept { return code >= IBV_MTU_256 && code <= IBV_MTU_4096; }

}  // namespace

Result<ibv_mtu> agree_mtu(ibv_mtu local, std::uint8_t remote_code) {
  if (!is_mtu(remote_code) || !is_mtu(local)) return fail(Errc::kProtocol, "agree on the MTU");
  return std::min(local, static_cast<ibv_mtu>(remote_code));
}

Outcome<PkeyPair> agree_pkey(const PkeySide& local, const PkeySide& remote) {
  BL_TRY(check_value(local));
  for (std::size_t i = 0; i < local.table.size(); ++i) {
    if (!is_candidate(local, i)) continue;
    for (std::size_t j = 0; j < remote.table.size(); ++j) {
      if (!is_candidate(remote, j)) continue;
      const std::uint16_t ours = local.table[i];
      const std::uint16_t theirs = remote.table[j];
      if (((ours ^ theirs) & kPartition) != 0 || ((ours | theirs) & kFullMember) == 0) continue;
      return PkeyPair{.local_index = static_cast<std::uint16_t>(i),
                      .remote_index = static_cast<std::uint16_t>(j),
                      .partition = static_cast<std::uint16_t>(ours & kPartition)};
    }
  }
  return fail("no partition that both ends are in, one of them as a full member: partition keys " +
              table_text(local) + " on " + std::string(local.who) + ", " + table_text(remote) +
              " on " + std::string(remote.who));
}

Outcome<int> fixed_pkey_index(const PkeySide& port) {
  if (port.choice.value < 0) return port.choice.index;
  BL_TRY(check_value(port));
  int best = -1;
  for (std::size_t i = 0; i < port.table.size(); ++i) {
    if (!is_candidate(port, i)) continue;
    if ((port.table[i] & kFullMember) != 0) return static_cast<int>(i);
    if (best < 0) best = static_cast<int>(i);
  }
  return best;
}

Outcome<std::uint16_t> choose_own_pkey(const PkeySide& port) {
  BL_TRY(check_value(port));
  for (std::size_t i = 0; i < port.table.size(); ++i) {
    if (is_candidate(port, i) && (port.table[i] & kFullMember) != 0) {
      return static_cast<std::uint16_t>(i);
    }
  }
  return fail("no partition that the port is a full member of: partition keys " + table_text(port));
}

AgreedValue agree_value(int connector_value, int acceptor_value) noexcept {
  if (connector_value < 0) return {.value = std::max(acceptor_value, 0)};
  return {.value = connector_value,
          .acceptor_overruled = acceptor_value >= 0 && acceptor_value != connector_value};
}

}  // namespace beeline
