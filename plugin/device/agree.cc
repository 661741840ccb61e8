// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/agree.h"

#include <algorithm>
#include <cstdio>

namespace beeline {
namespace {

constexpr std::uint16_t kFullMember = 0x8000;
constexpr std::uint16_t kPartition = 0x7fff;

// Whether the entry may be used: it is not empty, and it is the fixed one if there is one.
bool is_candidate(const PkeySide& side, std::size_t index) noexcept {
  if (side.fixed_index >= 0 && index != static_cast<std::size_t>(side.fixed_index)) return false;
  return (side.table[index] & kPartition) != 0;
}

std::string table_text(const PkeySide& side) {
  std::string text;
  for (std::size_t i = 0; i < side.table.size(); ++i) {
    if (!is_candidate(side, i)) continue;
    char key[8];
    std::snprintf(key, sizeof key, "0x%04x", static_cast<unsigned>(side.table[i]));
    text += (text.empty() ? "" : ", ") + std::string(key) + " at index " + std::to_string(i);
  }
  if (text.empty()) text = "none";
  if (side.fixed_index >= 0) text += " (index " + std::to_string(side.fixed_index) + " is set)";
  return text;
}

bool is_mtu(int code) noexcept { return code >= IBV_MTU_256 && code <= IBV_MTU_4096; }

}  // namespace

Result<ibv_mtu> agree_mtu(ibv_mtu local, std::uint8_t remote_code) {
  if (!is_mtu(remote_code) || !is_mtu(local)) return fail(Errc::kProtocol, "agree on the MTU");
  return std::min(local, static_cast<ibv_mtu>(remote_code));
}

Outcome<PkeyPair> agree_pkey(const PkeySide& local, const PkeySide& remote) {
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

Outcome<std::uint16_t> choose_own_pkey(const PkeySide& port) {
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
