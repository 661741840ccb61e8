// SPDX-License-Identifier: Apache-2.0
// The bytes of device memory: a file without a name, mapped where the program does not know of it.
// Others map it too, and it lives as long as any of them does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace softnic::gpu {

// How a file tells who still has it: each user gets an open file of its own with a lock on a byte
// that stands for nothing else. The kernel lets go of it with the last descriptor and mapping, in
// whatever process that is.
class Users {
 public:
  // The errno of what failed.
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
  // nullptr: out of memory or descriptors.
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

// Bytes of all pages there are on a GPU.
std::uint64_t used_on(int gpu) noexcept;

// A part of some pages.
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
