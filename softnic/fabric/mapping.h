// SPDX-License-Identifier: Apache-2.0
// Owns a memory mapping.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace softnic {

class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(void* base, std::size_t length) noexcept : base_(base), length_(length) {}
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(length_, other.length_);
    return *this;
  }
  ~Mapping() {
    if (base_ != nullptr) ::munmap(base_, length_);
  }

  // Maps `length` bytes of an open file as shared. Returns an empty Mapping and sets errno on
  // failure.
  static Mapping of_file(int fd, std::size_t length) noexcept {
    void* base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return base == MAP_FAILED ? Mapping() : Mapping(base, length);
  }

  std::byte* base() const noexcept { return static_cast<std::byte*>(base_); }
  std::size_t length() const noexcept { return length_; }
  explicit operator bool() const noexcept { return base_ != nullptr; }

 private:
  void* base_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace softnic
