// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/payload.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/clock.h"
#include "plugin/repair/times.h"

namespace beeline::simulation {
namespace {

constexpr std::uint64_t kSpace = std::uint64_t{1} << 40;
constexpr std::uint64_t kAlignment = std::uint64_t{1} << 21;
// A write that a device has posted to memory of a GPU may be under way when its completion is
// there, but not for ever: PCIe delivers posted writes without any help. The plugin relies on a
// time, and here they take almost that long.
constexpr std::int64_t kLongestPostedNs = times::kLongestPostedNs - 10 * times::kNsPerMs;

// Reserved once for the process.
std::uint64_t start_of_space() {
  static void* const space =
      ::mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) std::abort();
  return (reinterpret_cast<std::uint64_t>(space) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Payload::Payload() : next_(start_of_space()) {}

bool Payload::contains(std::uint64_t address) noexcept {
  return address - start_of_space() < kSpace - kAlignment;
}

std::size_t Payload::add(std::uint64_t size, bool is_of_gpu) {
  buffers_.push_back({.address = next_, .size = size, .is_of_gpu = is_of_gpu});
  next_ += (size + kAlignment) / kAlignment * kAlignment;
  return buffers_.size() - 1;
}

PayloadBuffer* Payload::find(std::uint64_t address) noexcept {
  auto found = std::ranges::upper_bound(buffers_, address, {}, &PayloadBuffer::address);
  if (found == buffers_.begin()) return nullptr;
  --found;
  return address - found->address <= found->size ? &*found : nullptr;
}

Piece Payload::read(std::uint64_t address, std::uint32_t length) {
  const PayloadBuffer* const buffer = find(address);
  if (buffer == nullptr || buffer->message == 0) return {.length = length};
  return {.message = buffer->message, .offset = address - buffer->address, .length = length};
}

std::string Payload::write(std::uint64_t address, const Piece& piece, std::uint32_t device) {
  PayloadBuffer* const buffer = find(address);
  if (buffer == nullptr) return "a device writes to memory that is no buffer";
  const std::uint64_t at = address - buffer->address;
  const std::int64_t hidden_until_ns = buffer->is_of_gpu ? now_ns() + kLongestPostedNs : 0;
  if (buffer->granted == 0) {
    return "a device writes message " + std::to_string(piece.message) + " into buffer " +
           std::to_string(buffer - buffers_.data()) + ", which is not granted now";
  }
  if (at + piece.length > buffer->granted) return "a device writes beyond what was granted";
  if (piece.message != buffer->expected) {
    return "a device writes message " + std::to_string(piece.message) + " into buffer " +
           std::to_string(buffer - buffers_.data()) + ", which waits for message " +
           std::to_string(buffer->expected);
  }
  for (PayloadBuffer::Extent& older : buffer->extents) {
    if (older.at == at && older.piece.length == piece.length) {
      older = {.at = at, .piece = piece, .device = device, .hidden_until_ns = hidden_until_ns};
      return {};
    }
  }
  placed_[piece.message] += piece.length;
  buffer->extents.push_back(
      {.at = at, .piece = piece, .device = device, .hidden_until_ns = hidden_until_ns});
  return {};
}

std::uint64_t Payload::take_placed(std::uint64_t message) {
  const auto found = placed_.find(message);
  if (found == placed_.end()) return 0;
  const std::uint64_t bytes = found->second;
  placed_.erase(found);
  return bytes;
}

void Payload::reveal(std::uint32_t device) noexcept {
  for (PayloadBuffer& buffer : buffers_) {
    for (PayloadBuffer::Extent& extent : buffer.extents) {
      if (extent.device == device) extent.hidden_until_ns = 0;
    }
  }
}

// The extents may overlap: a chunk that was sent again on another path may be cut otherwise. What
// they say about a byte has to be the same.
std::string Payload::check(const PayloadBuffer& buffer, std::uint64_t message, std::uint64_t size) {
  std::vector<PayloadBuffer::Extent> extents = buffer.extents;
  std::ranges::sort(extents, {}, &PayloadBuffer::Extent::at);
  const std::int64_t now = now_ns();
  std::uint64_t covered = 0;
  for (const PayloadBuffer::Extent& extent : extents) {
    if (extent.at >= size && extent.piece.length != 0) return "more bytes than the message has";
    if (extent.piece.message != message) {
      return "holds message " + std::to_string(extent.piece.message) + " in place of " +
             std::to_string(message);
    }
    if (extent.piece.offset != extent.at) return "holds bytes of another place of the message";
    // Another device may have written the same bytes again.
    if (extent.hidden_until_ns > now) continue;
    if (extent.at > covered) break;
    covered = std::max(covered, extent.at + extent.piece.length);
  }
  if (covered >= size) return {};
  return "lacks bytes of message " + std::to_string(message) + " from " + std::to_string(covered);
}

}  // namespace beeline::simulation
