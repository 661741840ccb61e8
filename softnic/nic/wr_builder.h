// SPDX-License-Identifier: Apache-2.0
// Collects the requests between ibv_wr_start and ibv_wr_complete, and posts them as one chain.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace softnic {

class Qp;

class WrBuilder {
 public:
  void start() noexcept;
  // Adds a request. The setters below fill in the last one.
  ibv_send_wr& add(ibv_wr_opcode opcode, std::uint64_t wr_id, unsigned int flags);
  void set_pieces(const ibv_sge* pieces, std::size_t count);
  void set_inline(const ibv_data_buf* buffers, std::size_t count);
  void reject(int error) noexcept { error_ = error; }

  // Posts all requests and returns 0, or none and returns an errno.
  int post(Qp& qp);

 private:
  struct Staged {
    ibv_send_wr wr;
    std::vector<ibv_sge> pieces;
    std::vector<std::byte> inline_bytes;
  };
  std::deque<Staged> staged_;  // reused; as long as the largest batch so far
  std::size_t count_ = 0;
  int error_ = 0;
};

// Fills in the qp's ibv_wr_* functions.
void install_wr_functions(ibv_qp_ex& qp);

}  // namespace softnic
