// SPDX-License-Identifier: Apache-2.0
//
// Features that softnic lacks return a clear error. A feature that is added is removed from here
// and gets its own tests.
#include <functional>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

struct Stage {
  TestFabric fabric;
  Endpoint end{"softnic0"};
  Buffer buffer = end.buffer(4096);

  ibv_context* context() const { return end.context.get(); }
  ibv_pd* pd() const { return end.pd.get(); }
};

bool is_unsupported(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

// Calls that create an object return null and set errno.
struct Creation {
  const char* what;
  std::function<void*(Stage&)> call;
};

const std::vector<Creation>& creations() {
  static const std::vector<Creation> calls = {
      {"shared receive queue of another type",
       [](Stage& s) -> void* {
         ibv_srq_init_attr_ex attr{};
         attr.attr = {16, 1, 0};
         attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
         attr.srq_type = IBV_SRQT_TM;
         attr.pd = s.pd();
         return ibv_create_srq_ex(s.context(), &attr);
       }},
      {"memory window", [](Stage& s) -> void* { return ibv_alloc_mw(s.pd(), IBV_MW_TYPE_2); }},
      {"device memory",
       [](Stage& s) -> void* {
         ibv_alloc_dm_attr attr{};
         attr.length = 64;
         return ibv_alloc_dm(s.context(), &attr);
       }},
      {"null memory region", [](Stage& s) -> void* { return ibv_alloc_null_mr(s.pd()); }},
      {"address handle",
       [](Stage& s) -> void* {
         ibv_ah_attr attr{};
         attr.is_global = 1;
         attr.port_num = 1;
         attr.grh.dgid = address_of(s.end.qp).gid;
         attr.grh.sgid_index = 3;
         return ibv_create_ah(s.pd(), &attr);
       }},
      {"XRC domain",
       [](Stage& s) -> void* {
         ibv_xrcd_init_attr attr{};
         attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
         attr.fd = -1;
         return ibv_open_xrcd(s.context(), &attr);
       }},
      {"thread domain",
       [](Stage& s) -> void* {
         ibv_td_init_attr attr{};
         return ibv_alloc_td(s.context(), &attr);
       }},
      {"parent domain",
       [](Stage& s) -> void* {
         ibv_parent_domain_init_attr attr{};
         attr.pd = s.pd();
         return ibv_alloc_parent_domain(s.context(), &attr);
       }},
      {"work queue",
       [](Stage& s) -> void* {
         ibv_wq_init_attr attr{};
         attr.wq_type = IBV_WQT_RQ;
         attr.max_wr = 8;
         attr.max_sge = 1;
         attr.pd = s.pd();
         attr.cq = s.end.recv_cq.get();
         return ibv_create_wq(s.context(), &attr);
       }},
      {"indirection table",
       [](Stage& s) -> void* {
         ibv_rwq_ind_table_init_attr attr{};
         return ibv_create_rwq_ind_table(s.context(), &attr);
       }},
      {"counters",
       [](Stage& s) -> void* {
         ibv_counters_init_attr attr{};
         return ibv_create_counters(s.context(), &attr);
       }},
      {"flow rule",
       [](Stage& s) -> void* {
         ibv_flow_attr attr{};
         attr.type = IBV_FLOW_ATTR_NORMAL;
         attr.size = sizeof(attr);
         attr.port = 1;
         return ibv_create_flow(s.end.qp, &attr);
       }},
  };
  return calls;
}

// Other calls return the error, or -1 with errno.
struct Action {
  const char* what;
  std::function<int(Stage&)> call;
};

const std::vector<Action>& actions() {
  static const std::vector<Action> calls = {
      {"re-registration",
       [](Stage& s) {
         return ibv_rereg_mr(s.buffer.mr(), IBV_REREG_MR_CHANGE_ACCESS, s.pd(), nullptr, 0,
                             IBV_ACCESS_LOCAL_WRITE);
       }},
      {"multicast",
       [](Stage& s) {
         const ibv_gid gid = address_of(s.end.qp).gid;
         return ibv_attach_mcast(s.end.qp, &gid, 0xC000);
       }},
      {"packet pacing",
       [](Stage& s) {
         ibv_qp_rate_limit_attr attr{};
         attr.rate_limit = 1000;
         return ibv_modify_qp_rate_limit(s.end.qp, &attr);
       }},
      {"completion moderation",
       [](Stage& s) {
         ibv_modify_cq_attr attr{};
         attr.attr_mask = IBV_CQ_ATTR_MODERATE;
         return ibv_modify_cq(s.end.send_cq.get(), &attr);
       }},
  };
  return calls;
}

}  // namespace

TEST_CASE("unsupported: missing objects are refused with an errno", "[softnic][unsupported]") {
  Stage stage;
  for (const Creation& creation : creations()) {
    INFO(creation.what);
    errno = 0;
    CHECK(creation.call(stage) == nullptr);
    CHECK(is_unsupported(errno));
  }
}

TEST_CASE("unsupported: missing actions are refused with an errno", "[softnic][unsupported]") {
  Stage stage;
  for (const Action& action : actions()) {
    INFO(action.what);
    errno = 0;
    const int rc = action.call(stage);
    CHECK(rc != 0);
    CHECK((is_unsupported(rc) || is_unsupported(errno)));
  }
}

TEST_CASE("unsupported: only reliable connections can be created", "[softnic][unsupported]") {
  Stage stage;
  const auto type = GENERATE(IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
                             IBV_QPT_XRC_RECV, IBV_QPT_DRIVER);
  ibv_qp_init_attr attr = init_attr(stage.end);
  attr.qp_type = type;
  errno = 0;
  CHECK(ibv_create_qp(stage.pd(), &attr) == nullptr);
  CHECK(is_unsupported(errno));
}

TEST_CASE("unsupported: missing operations cannot be posted", "[softnic][unsupported]") {
  const auto opcode = GENERATE(IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO);
  Pair pair;
  Buffer local = pair.a.buffer(8);
  Buffer remote = pair.b.buffer(8);
  SendWork work = write_work(local.all(), remote.all());
  work.opcode = opcode;
  const int rc = post(pair.a.qp, work);
  CHECK((rc == EINVAL || is_unsupported(rc)));
  // Nothing was queued, and the queue pair still works.
  REQUIRE(post(pair.a.qp, nothing_work(7)) == 0);
  must_complete(pair.a.send_cq.get(), 7);
  CHECK(remote.is_zero(0, 8));
}

TEST_CASE("unsupported: unknown queries return an error", "[softnic][unsupported]") {
  Stage stage;
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  CHECK(ibv_query_rt_values_ex(stage.context(), &values) != 0);
  ibv_ece ece{};
  const int query = ibv_query_ece(stage.end.qp, &ece);
  CHECK((query == 0 || is_unsupported(query)));
  ibv_query_device_ex_input input{};
  input.comp_mask = 1;
  ibv_device_attr_ex attr{};
  CHECK(ibv_query_device_ex(stage.context(), &input, &attr) == EINVAL);
}

TEST_CASE("unsupported: fork support can always be requested", "[softnic][unsupported]") {
  const TestFabric fabric;
  CHECK(ibv_fork_init() == 0);
  CHECK(ibv_is_fork_initialized() != IBV_FORK_DISABLED);
}

TEST_CASE("unsupported: missing kinds of memory are refused", "[softnic][unsupported]") {
  Stage stage;
  const int access = GENERATE(int{IBV_ACCESS_ON_DEMAND}, int{IBV_ACCESS_ZERO_BASED},
                              int{IBV_ACCESS_MW_BIND}, int{IBV_ACCESS_HUGETLB});
  std::vector<std::uint8_t> bytes(64);
  errno = 0;
  const MrPtr mr(
      ibv_reg_mr(stage.pd(), bytes.data(), bytes.size(), access | IBV_ACCESS_LOCAL_WRITE));
  CHECK(mr == nullptr);
  CHECK((is_unsupported(errno) || errno == EINVAL));
}
