// SPDX-License-Identifier: Apache-2.0
// The list of behaviours: what each is called, what the specification says of it, how to find out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/lab.h"

namespace conformance {

// `spec` is the outcome that the InfiniBand specification, or failing that the manual pages of
// libibverbs, demand. Where they allow several: all of them, with `|` between. Where they leave it
// to the device: kOpen.
inline constexpr const char* kOpen = "open";
// An outcome: this link layer has no such thing. Fits every expectation.
inline constexpr const char* kDoesNotApply = "does not apply";

struct Behaviour {
  std::string name;  // subject.what[.which], as --only takes it
  std::string spec;
  std::function<std::string(Lab&)> run;  // the outcome, in a few words that do not vary
};
using Catalogue = std::vector<Behaviour>;

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
