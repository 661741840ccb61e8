// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/conformance/catalogue.h"

namespace conformance {

Catalogue whole_catalogue() {
  Catalogue all;
  for (const auto add :
       {add_device, add_memory, add_cq, add_cqe, add_qp, add_states, add_attributes, add_path_mtu,
        add_post, add_write, add_read, add_send, add_silence, add_flush, add_events, add_atomics,
        add_shared_receives, add_channels, add_extended_cq}) {
    add(all);
  }
  return all;
}

}  // namespace conformance
