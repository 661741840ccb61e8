// SPDX-License-Identifier: Apache-2.0
//
// The arena of a process as its peers see it. Tests write into it the state that a process leaves
// if it dies between two stores, because a signal cannot be timed that exactly.
#pragma once

#include <fcntl.h>

#include <string>

#include "common/base/fd.h"
#include "softnic/fabric/arena.h"
#include "softnic/fabric/mapping.h"
#include "tests/support/verbs_fixture.h"

namespace beeline::test {

// The arena of the process that created `qp`.
class ArenaView {
 public:
  ArenaView(const TestFabric& fabric, const ibv_qp* qp) {
    const std::string path =
        fabric.fabric().dir() + "/arena." + std::to_string(softnic::qpn_slot(qp->qp_num));
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    mapping_ = softnic::Mapping::of_file(file.get(), softnic::kArenaBytes);
    BL_MUST(mapping_);
    arena_ = softnic::Arena(mapping_.base());
  }
  const softnic::Arena& get() const { return arena_; }
  softnic::SrqRecord& srq_of(const ibv_qp* qp) const {
    return arena_.srq(arena_.qp(softnic::qpn_index(qp->qp_num)).srq);
  }
  softnic::CqRecord& recv_cq_of(const ibv_qp* qp) const {
    return arena_.cq(arena_.qp(softnic::qpn_index(qp->qp_num)).recv_cq);
  }

 private:
  softnic::Mapping mapping_;
  softnic::Arena arena_;
};

}  // namespace beeline::test
