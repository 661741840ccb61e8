// SPDX-License-Identifier: Apache-2.0
// The storage of device memory: a file without a name, which softgpu maps at an address of its own.
// NICs map it as well, and it exists as long as one of these mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace softnic::gpu {

// Tracks the users of a file. Each user gets an open file description with a lock on a byte of its
// own. The kernel releases the lock with the user's last descriptor and mapping, in whatever
// process.
class Users {
 public:
  // Opens the file for a user. The error is an errno.
  static beeline::Result<int, int> open_for(int file, std::uint64_t user);
  static bool has(int file, std::uint64_t user) noexcept;
};

struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};
beeline::Result<FileId, int> id_of(int fd);

inline constexpr int kMaxGpus = 32;

class Pages {
 public:
  // Returns nullptr if there is no memory or descriptor left.
  static std::shared_ptr<Pages> make(std::size_t size, int gpu);
  Pages(beeline::UniqueFd file, std::byte* bytes, std::size_t size, int gpu) noexcept;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  int file() const noexcept { return file_.get(); }
  std::byte* bytes() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return size_; }
  int gpu() const noexcept { return gpu_; }

 private:
  beeline::UniqueFd file_;
  std::byte* bytes_;
  std::size_t size_;
  int gpu_;
};

// The total size of all pages of a GPU.
std::uint64_t used_on(int gpu) noexcept;

// A part of a Pages object.
struct Piece {
  std::shared_ptr<Pages> pages;
  std::size_t offset = 0;
  std::size_t length = 0;
  std::byte* bytes() const noexcept { return pages->bytes() + offset; }
};

constexpr std::size_t round_up(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace softnic::gpu
