// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes the cells by which the ends of a comm exchange messages in-band.
#include <algorithm>

#include "common/check/assert.h"
#include "plugin/stats/shared_word.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/send_comm.h"

namespace beeline {

wire::InBandArea* Comm::in_band_area() const noexcept {
  const std::uint64_t ring = role_ == Role::kSend ? 0 : wire::kCreditRingBytes;
  const bool has_cell = connection_.window.length >= ring + sizeof(wire::InBandCell);
  if (path_count_ == 1 || !has_cell) return nullptr;
  return connection_.memory.at<wire::InBandArea>(wire::kCreditRingBytes);
}

bool Comm::has_in_band_news() const noexcept {
  const wire::InBandArea* const area = in_band_area();
  return area != nullptr &&
         wire::write_of(shared::load(area->theirs[wire::kWriteWord])) != shared::load(area->seen);
}

std::optional<wire::InBandCell> Comm::read_in_band() noexcept {
  if (!has_in_band_news()) return std::nullopt;
  wire::InBandArea& area = *in_band_area();
  wire::InBandWords words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = shared::load(area.theirs[i]);
  const std::optional<wire::InBandCell> cell = wire::open_cell(words);
  if (!cell) return std::nullopt;  // the rest of it is on its way
  shared::store(area.seen, cell->write);
  link_->note_heard();
  return cell;
}

wire::InBandCell* Comm::own_cell() noexcept {
  wire::InBandArea* const area = in_band_area();
  if (area == nullptr) return nullptr;
  const auto is_writing = [](const Path& path) {
    return path.posts && path.repair != nullptr && path.repair->writes_in_band;
  };
  return std::ranges::any_of(paths(), is_writing) ? nullptr : &area->ours;
}

Path* Comm::in_band_path() noexcept {
  const auto carries = [](const Path& path) {
    return path.state == PathState::kUp && path.send_free != 0 && path.window_key != 0;
  };
  const auto found = std::ranges::find_if(paths(), carries);
  return found == paths().end() ? nullptr : &*found;
}

void Comm::write_in_band(Path& path) {
  BL_ASSERT(path.repair != nullptr, "the comm knows that a path has failed, or the other end does");
  const std::uint64_t ring = role_ == Role::kSend ? 0 : wire::kCreditRingBytes;
  ibv_sge cell = {.addr = reinterpret_cast<std::uint64_t>(&in_band_area()->ours),
                  .length = sizeof(wire::InBandCell),
                  .lkey = path.lkey};
  ibv_send_wr write = {};
  write.wr_id = role_ == Role::kSend ? SendId{.slot = work_id::kInBandSlot, .wrs = 1}.packed()
                                     : work_id::kGrantInBand;
  write.sg_list = &cell;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = IBV_SEND_SIGNALED;
  write.wr.rdma.remote_addr = connection_.window.address + ring;
  write.wr.rdma.rkey = path.window_key;
  path.repair->writes_in_band = true;
  (void)post_signaled(path, write, "send a message about a path");
}

}  // namespace beeline
