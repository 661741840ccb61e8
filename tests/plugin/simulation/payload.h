// SPDX-License-Identifier: Apache-2.0
//
// The memory of applications. It has addresses and no bytes: the pages cannot be accessed, so a
// plugin that reads or writes payload by the CPU ends the program. What a device writes is noted as
// a piece of a message. Each buffer has an owner, which is asked at the moment of each access by a
// device.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace beeline::simulation {

// Bytes of a message, from `offset` on.
struct Piece {
  std::uint64_t message = 0;  // 0: bytes of no message
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

struct PayloadBuffer {
  // Bytes of a message that lie in the buffer.
  struct Extent {
    std::uint64_t at = 0;  // from the start of the buffer
    Piece piece;
    std::uint32_t device = 0;  // that has written it
    // Until then the GPU does not see it. A READ by the device makes it visible earlier.
    std::int64_t hidden_until_ns = 0;
  };

  std::uint64_t address = 0;
  std::uint64_t size = 0;
  bool is_of_gpu = false;
  // A source: the message that the application has put there; 0: what is there has no meaning.
  std::uint64_t message = 0;
  // A destination: how many bytes the peer may write now; 0: none.
  std::uint64_t granted = 0;
  std::uint64_t expected = 0;  // the message that it was granted to
  std::vector<Extent> extents = {};
};

// All payload memory of one world.
class Payload {
 public:
  Payload();

  static bool contains(std::uint64_t address) noexcept;
  // Valid until the next add().
  std::size_t add(std::uint64_t size, bool is_of_gpu);
  PayloadBuffer& at(std::size_t index) noexcept { return buffers_[index]; }
  PayloadBuffer* find(std::uint64_t address) noexcept;

  // A device reads: which bytes it gets.
  Piece read(std::uint64_t address, std::uint32_t length);
  // A device writes. Returns why that breaks a promise, or nothing.
  std::string write(std::uint64_t address, const Piece& piece, std::uint32_t device);
  // How many bytes of the message have been written somewhere. Asked once.
  std::uint64_t take_placed(std::uint64_t message);
  // The writes of the device to memory of GPUs become visible: a READ by it has returned.
  void reveal(std::uint32_t device) noexcept;
  // Whether the first `size` bytes of the buffer are those of the message. Returns why not.
  static std::string check(const PayloadBuffer& buffer, std::uint64_t message, std::uint64_t size);

 private:
  std::vector<PayloadBuffer> buffers_;
  std::unordered_map<std::uint64_t, std::uint64_t> placed_;  // bytes by message
  std::uint64_t next_;
};

}  // namespace beeline::simulation
