// SPDX-License-Identifier: Apache-2.0
#include "plugin/device/agree.h"

#include <algorithm>
#include <cstdio>
#include <vector>

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

std::vector<std::size_t> candidates(const PkeySide& side) {
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < side.table.size(); ++i) {
    if (is_candidate(side, i)) indexes.push_back(i);
  }
  return indexes;
}

std::string table_text(const PkeySide& side) {
  std::string text;
  for (const std::size_t i : candidates(side)) {
    text += (text.empty() ? "" : ", ") + key_text(side.table[i]) + " at index " + std::to_string(i);
  }
  if (text.empty()) text = "none";
  if (side.choice.value >= 0) return text + " (" + key_text(side.choice.value) + " is set)";
  if (side.choice.index >= 0) text += " (index " + std::to_string(side.choice.index) + " is set)";
  return text;
}

// Not an error of the peer, so it is said before the tables of both ends are compared.
Outcome<void> check_value(const PkeySide& port) {
  if (port.choice.value < 0 || !candidates(port).empty()) return {};
  return fail(std::string(port.who) + " has no partition key " + key_text(port.choice.value) +
              ", which NCCL_IB_PKEY_VALUE or BEELINE_PKEY_VALUE asks for; it has " +
              table_text({.table = port.table}));
}

auto find_full_member(const PkeySide& side, const std::vector<std::size_t>& indexes) {
  return std::ranges::find_if(
      indexes, [&](std::size_t index) { return (side.table[index] & kFullMember) != 0; });
}

bool is_mtu(int code) noexcept { return code >= IBV_MTU_256 && code <= IBV_MTU_4096; }

}  // namespace

std::string key_text(int key) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", static_cast<unsigned>(key));
  return text;
}

Result<ibv_mtu> agree_mtu(ibv_mtu local, std::uint8_t remote_code) {
  if (!is_mtu(remote_code) || !is_mtu(local)) return fail(Errc::kProtocol, "agree on the MTU");
  return std::min(local, static_cast<ibv_mtu>(remote_code));
}

Outcome<PkeyPair> agree_pkey(const PkeySide& local, const PkeySide& remote) {
  BL_TRY(check_value(local));
  for (const std::size_t i : candidates(local)) {
    for (const std::size_t j : candidates(remote)) {
      const std::uint16_t ours = local.table[i];
      const std::uint16_t theirs = remote.table[j];
      if (((ours ^ theirs) & kPartition) != 0 || ((ours | theirs) & kFullMember) == 0) continue;
      return PkeyPair{.local_index = static_cast<std::uint16_t>(i),
                      .remote_index = static_cast<std::uint16_t>(j)};
    }
  }
  return fail("no partition that both ends are in, one of them as a full member: partition keys " +
              table_text(local) + " on " + std::string(local.who) + ", " + table_text(remote) +
              " on " + std::string(remote.who));
}

Outcome<int> fixed_pkey_index(const PkeySide& port) {
  if (port.choice.value < 0) return port.choice.index;
  BL_TRY(check_value(port));
  const std::vector<std::size_t> usable = candidates(port);
  const auto full = find_full_member(port, usable);
  return static_cast<int>(full != usable.end() ? *full : usable.front());
}

Outcome<std::uint16_t> choose_own_pkey(const PkeySide& port) {
  BL_TRY(check_value(port));
  const std::vector<std::size_t> usable = candidates(port);
  const auto full = find_full_member(port, usable);
  if (full != usable.end()) return static_cast<std::uint16_t>(*full);
  return fail("no partition that the port is a full member of: partition keys " + table_text(port));
}

AgreedValue agree_value(int connector_value, int acceptor_value) noexcept {
  if (connector_value < 0) return {.value = std::max(acceptor_value, 0)};
  return {.value = connector_value,
          .acceptor_overruled = acceptor_value >= 0 && acceptor_value != connector_value};
}

}  // namespace beeline
