// SPDX-License-Identifier: Apache-2.0
// The staging of ibv_wr_start .. ibv_wr_complete: collects requests and posts them as one chain.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <deque>
#include <vector>

namespace softnic {

class Qp;

class WrBuilder {
 public:
  void start() noexcept;
  // Begins a request; the setters below fill in the newest one.
  ibv_send_wr& add(ibv_wr_opcode opcode, std::uint64_t wr_id, unsigned int flags);
  void set_pieces(const ibv_sge* pieces, std::size_t count);
  void set_inline(const ibv_data_buf* buffers, std::size_t count);
  void reject(int error) noexcept { error_ = error; }

  // Posts what was collected: all of it, or nothing and an errno.
  int post(Qp& qp);

 private:
  struct Staged {
    ibv_send_wr wr;
    std::vector<ibv_sge> pieces;
    std::vector<std::byte> inline_bytes;
  };
  std::deque<Staged> staged_;  // grows to the largest batch and is used again
  std::size_t count_ = 0;
  int error_ = 0;
};

// Fills in the qp's ibv_wr_* functions.
void install_wr_functions(ibv_qp_ex& qp);

}  // namespace softnic
