// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/cm_agreement.h"

#include "common/base/log.h"

namespace beeline {

Outcome<void> add_cm_addresses(CmHub& cm, const PortSide& ours, wire::PathOffer& offer) {
  if (!is_cm_required(ours)) return {};
  for (const NetdevAddress& own : BL_TRY(cm.addresses(ours.device))) {
    if (offer.cm.addresses.size() == wire::kMaxCmAddresses) break;
    offer.cm.addresses.push_back(own.address);
  }
  return {};
}

// If this end's user asks for librdmacm and it cannot be used, there is no agreement. If only the
// peer's user asks for it, the queue pair is then connected without it.
Outcome<Agreement> agree_on_path(CmHub& cm, const PortSide& ours, const wire::PathOffer& offer,
                                 const std::string& peer_host, const FlowLabels& labels) {
  if (!is_cm_used(ours, offer, peer_host)) return agree(ours, offer, peer_host, labels);
  Agreement agreement = BL_TRY(agree_with_cm(ours, offer, peer_host));
  if (const auto able = cm.addresses(ours.device); !able) {
    if (is_cm_required(ours)) return fail(able.error());
    BL_INFO(kLogNet, "%s is set to use librdmacm, which is not used: %s", peer_host.c_str(),
            able.error().text.c_str());
    return agree(ours, offer, peer_host, labels);
  }
  agreement.answer.cm.emplace();
  return agreement;
}

}  // namespace beeline
