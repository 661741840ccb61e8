// SPDX-License-Identifier: Apache-2.0
//
// Protection domains, thread domains, and the parent domains that combine the two.
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "tests/support/nullverbs/making.h"
#include "tests/support/nullverbs/operations.h"

namespace nullverbs {
namespace {

int refuse_to_go(const Users& users) noexcept {
  if (users == 0) return 0;
  count(&NullverbsReport::failures);
  return EBUSY;
}

Domain* make_domain(ibv_context* context) {
  auto* const domain = make<Domain>();
  domain->context = context;
  return domain;
}

}  // namespace

bool refuses(const char* what) {
  const char* const refused = std::getenv("NULLVERBS_REFUSES");
  if (refused == nullptr || std::string_view(refused) != what) return false;
  errno = EOPNOTSUPP;
  return true;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* init) {
  if (init->comp_mask != 0) return refuse<ibv_td>(EINVAL);
  if (refuses("td")) return nullptr;
  auto* const td = make<ThreadDomain>();
  td->context = context;
  count(&NullverbsReport::thread_domains);
  count_surely(&NullverbsReport::live_thread_domains);
  return td;
}

int dealloc_td(ibv_td* base) {
  ThreadDomain& td = ThreadDomain::of(base);
  if (const int rc = refuse_to_go(td.users); rc != 0) return rc;
  count_surely(&NullverbsReport::live_thread_domains, -1);
  return unmake(&td);
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* init) {
  if (init->pd == nullptr || init->comp_mask != 0) return refuse<ibv_pd>(EINVAL);
  if (refuses("pd")) return nullptr;
  Domain& given = Domain::of(init->pd);
  Domain* const domain = make_domain(context);
  domain->origin = given.origin != nullptr ? given.origin : &given;
  domain->number = given.number;
  ++domain->origin->users;
  if (init->td != nullptr) {
    domain->thread_domain = &ThreadDomain::of(init->td);
    ++domain->thread_domain->users;
  }
  count(&NullverbsReport::parent_domains);
  return domain;
}

}  // namespace nullverbs

using nullverbs::Domain;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  static std::atomic<std::uint32_t> last{0};
  Domain* const domain = nullverbs::make_domain(context);
  domain->number = ++last & 0xffff;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  Domain& domain = Domain::of(pd);
  if (const int rc = nullverbs::refuse_to_go(domain.users); rc != 0) return rc;
  if (domain.origin != nullptr) --domain.origin->users;
  if (domain.thread_domain != nullptr) --domain.thread_domain->users;
  return nullverbs::unmake(&domain);
}

}  // extern "C"
