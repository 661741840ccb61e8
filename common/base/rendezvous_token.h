// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace beeline {

// The variable with the secret of the ranks that meet at HOST:PORT. It is no parameter, and no
// report, record or command line may contain it.
inline constexpr const char* kRendezvousTokenVariable = "BEELINE_RENDEZVOUS_TOKEN";

}  // namespace beeline
