// SPDX-License-Identifier: Apache-2.0
// The list of tested behaviors: the name of each, its specified outcome, and the code that tests
// it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/beds/conformance/lab.h"

namespace conformance {

// `spec` is the outcome that the InfiniBand specification requires, or else the manual pages of
// libibverbs. If they permit several, all of them with `|` between. If they leave it to the device:
// kOpen.
inline constexpr const char* kOpen = "open";
// The outcome if the behavior does not exist for this link layer. It matches every expectation.
inline constexpr const char* kDoesNotApply = "does not apply";

struct Behavior {
  std::string name;  // subject.what[.which], as --only takes it
  std::string spec;
  std::function<std::string(Lab&)> run;  // returns the outcome as a constant text
};
using Catalogue = std::vector<Behavior>;

void add_device(Catalogue& all);
void add_memory(Catalogue& all);
void add_cq(Catalogue& all);
void add_cqe(Catalogue& all);
void add_qp(Catalogue& all);
void add_states(Catalogue& all);
void add_attributes(Catalogue& all);
void add_path_mtu(Catalogue& all);
void add_post(Catalogue& all);
void add_write(Catalogue& all);
void add_read(Catalogue& all);
void add_send(Catalogue& all);
void add_silence(Catalogue& all);
void add_flush(Catalogue& all);
void add_events(Catalogue& all);
void add_atomics(Catalogue& all);
void add_shared_receives(Catalogue& all);
void add_channels(Catalogue& all);
void add_extended_cq(Catalogue& all);

Catalogue whole_catalogue();

}  // namespace conformance
