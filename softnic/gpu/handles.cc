// SPDX-License-Identifier: Apache-2.0
// A file descriptor cannot represent a part of another file, so a handle is a separate file that is
// recognized by its inode.
#include "softnic/gpu/handles.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace softnic::gpu {

beeline::Result<int, int> Handles::make(Piece piece) {
  sweep();
  beeline::UniqueFd file(::memfd_create("softgpu-dmabuf", MFD_CLOEXEC));
  if (!file) return beeline::fail(int{errno});
  // As large as the range, so that a program can ask for the size of the dma-buf.
  if (::ftruncate(file.get(), static_cast<off_t>(piece.length)) != 0)
    return beeline::fail(int{errno});
  const FileId id = BL_TRY(id_of(file.get()));
  handles_.reserve(handles_.size() + 1);
  const int fd = BL_TRY(Users::open_for(file.get(), 0));
  handles_.push_back({std::move(file), id, std::move(piece)});
  return fd;
}

const Piece* Handles::find(int fd) const {
  const beeline::Result<FileId, int> id = id_of(fd);
  if (!id) return nullptr;
  for (const Handle& handle : handles_)
    if (handle.id == *id) return &handle.piece;
  return nullptr;
}

beeline::Result<int, int> Handles::pin(const Piece& piece) {
  const std::uint64_t user = next_user_++;
  pins_.reserve(pins_.size() + 1);
  const int fd = BL_TRY(Users::open_for(piece.pages->file(), user));
  pins_.push_back({piece, user});
  return fd;
}

std::uint64_t Handles::pinned_on(int gpu) {
  sweep();
  std::uint64_t bytes = 0;
  for (const Pin& pin : pins_)
    if (pin.piece.pages->gpu() == gpu) bytes += pin.piece.length;
  return bytes;
}

std::uint64_t Handles::pinned() {
  sweep();
  std::uint64_t bytes = 0;
  for (const Pin& pin : pins_) bytes += pin.piece.length;
  return bytes;
}

std::uint64_t Handles::open() {
  sweep();
  return handles_.size();
}

void Handles::sweep() {
  std::erase_if(handles_, [](const Handle& handle) { return !Users::has(handle.file.get(), 0); });
  std::erase_if(pins_,
                [](const Pin& pin) { return !Users::has(pin.piece.pages->file(), pin.user); });
}

}  // namespace softnic::gpu
