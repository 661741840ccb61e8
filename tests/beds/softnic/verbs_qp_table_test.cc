// SPDX-License-Identifier: Apache-2.0
//
// The state table of an RC queue pair: every pair of states, without each required attribute, and
// with each attribute that is not permitted. The table is the one of the InfiniBand specification
// as Linux applies it to user programs.
#include <map>
#include <string>
#include <vector>

#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

struct Row {
  ibv_qp_state from;
  ibv_qp_state to;
  int required = 0;
  int optional = 0;
};

constexpr int kRtsOptional = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER;
constexpr int kSqdOptional = IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
                             IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC;

const std::vector<Row>& legal_rows() {
  static const std::vector<Row> rows = {
      {IBV_QPS_RESET, IBV_QPS_RESET},
      {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
      {IBV_QPS_INIT, IBV_QPS_RESET},
      {IBV_QPS_INIT, IBV_QPS_ERR},
      {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
      {IBV_QPS_INIT, IBV_QPS_RTR, kRtrMask & ~IBV_QP_STATE,
       IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      {IBV_QPS_RTR, IBV_QPS_RESET},
      {IBV_QPS_RTR, IBV_QPS_ERR},
      {IBV_QPS_RTR, IBV_QPS_RTS, kRtsMask & ~IBV_QP_STATE, kRtsOptional},
      {IBV_QPS_RTS, IBV_QPS_RESET},
      {IBV_QPS_RTS, IBV_QPS_ERR},
      {IBV_QPS_RTS, IBV_QPS_RTS, 0, kRtsOptional},
      {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      {IBV_QPS_SQD, IBV_QPS_RESET},
      {IBV_QPS_SQD, IBV_QPS_ERR},
      {IBV_QPS_SQD, IBV_QPS_RTS, 0, kRtsOptional},
      {IBV_QPS_SQD, IBV_QPS_SQD, 0, kSqdOptional},
      {IBV_QPS_ERR, IBV_QPS_RESET},
      {IBV_QPS_ERR, IBV_QPS_ERR},
  };
  return rows;
}

const Row* find_row(ibv_qp_state from, ibv_qp_state to) {
  for (const Row& row : legal_rows()) {
    if (row.from == from && row.to == to) return &row;
  }
  return nullptr;
}

const std::map<int, const char*>& attribute_names() {
  static const std::map<int, const char*> names = {
      {IBV_QP_CUR_STATE, "CUR_STATE"},
      {IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
      {IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
      {IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
      {IBV_QP_PORT, "PORT"},
      {IBV_QP_QKEY, "QKEY"},
      {IBV_QP_AV, "AV"},
      {IBV_QP_PATH_MTU, "PATH_MTU"},
      {IBV_QP_TIMEOUT, "TIMEOUT"},
      {IBV_QP_RETRY_CNT, "RETRY_CNT"},
      {IBV_QP_RNR_RETRY, "RNR_RETRY"},
      {IBV_QP_RQ_PSN, "RQ_PSN"},
      {IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
      {IBV_QP_ALT_PATH, "ALT_PATH"},
      {IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
      {IBV_QP_SQ_PSN, "SQ_PSN"},
      {IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
      {IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
      {IBV_QP_CAP, "CAP"},
      {IBV_QP_DEST_QPN, "DEST_QPN"},
  };
  return names;
}

// Attributes of path migration, which a device may refuse even if the table permits them.
constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

bool is_migration_optional(const Row& row) {
  return row.to == IBV_QPS_RTR || row.to == IBV_QPS_RTS ||
         (row.from == IBV_QPS_SQD && row.to == IBV_QPS_SQD);
}

constexpr ibv_qp_state kReachable[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                       IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};

// One QP, connected to itself whenever a peer is needed.
struct Subject {
  TestFabric fabric;
  Endpoint end{"softnic0"};

  void bring_to(ibv_qp_state state) {
    ibv_qp* qp = end.qp;
    if (state_of(qp) != IBV_QPS_RESET) BL_MUST_OK(modify_state(qp, IBV_QPS_RESET));
    if (state == IBV_QPS_RESET) return;
    to_init(qp);
    if (state == IBV_QPS_INIT) return;
    if (state == IBV_QPS_ERR) {
      BL_MUST_OK(modify_state(qp, IBV_QPS_ERR));
      return;
    }
    to_rtr(qp, address_of(qp));
    if (state == IBV_QPS_RTR) return;
    to_rts(qp);
    if (state == IBV_QPS_SQD) BL_MUST_OK(modify_state(qp, IBV_QPS_SQD));
  }

  int modify(ibv_qp_state to, int mask) {
    ibv_qp_attr attr = full_attr(end.qp, address_of(end.qp));
    attr.qp_state = to;
    return ibv_modify_qp(end.qp, &attr, mask);
  }

  ibv_qp_state state() { return state_of(end.qp); }
};

template <class Visit>
void for_each_attribute(int mask, Visit&& visit) {
  for (const auto& [bit, name] : attribute_names()) {
    if ((mask & bit) == 0) continue;
    INFO("attribute " << name);
    visit(bit);
  }
}

}  // namespace

TEST_CASE("qp_table: every legal transition works with its required attributes",
          "[softnic][qp_table]") {
  Subject subject;
  for (const Row& row : legal_rows()) {
    INFO(state_name(row.from) << " to " << state_name(row.to));
    subject.bring_to(row.from);
    CHECK(subject.modify(row.to, IBV_QP_STATE | row.required) == 0);
    CHECK(subject.state() == row.to);
    CHECK(subject.end.qp->state == row.to);
  }
}

TEST_CASE("qp_table: every other transition is EINVAL and changes nothing", "[softnic][qp_table]") {
  Subject subject;
  for (const ibv_qp_state from : kReachable) {
    for (int to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN; ++to) {
      const auto next = static_cast<ibv_qp_state>(to);
      if (find_row(from, next) != nullptr) continue;
      INFO(state_name(from) << " to " << state_name(next));
      subject.bring_to(from);
      // With no other attributes, and with those that are required from another state.
      for (const int extra : {0, kInitMask, kRtrMask, kRtsMask}) {
        CHECK(subject.modify(next, IBV_QP_STATE | extra) == EINVAL);
      }
      CHECK(subject.state() == from);
    }
  }
}

TEST_CASE("qp_table: a transition without one of its required attributes is EINVAL",
          "[softnic][qp_table]") {
  Subject subject;
  for (const Row& row : legal_rows()) {
    INFO(state_name(row.from) << " to " << state_name(row.to));
    subject.bring_to(row.from);
    for_each_attribute(row.required, [&](int bit) {
      CHECK(subject.modify(row.to, (IBV_QP_STATE | row.required) & ~bit) == EINVAL);
      CHECK(subject.state() == row.from);
    });
    // The refused calls changed nothing.
    CHECK(subject.modify(row.to, IBV_QP_STATE | row.required) == 0);
  }
}

TEST_CASE("qp_table: optional attributes are accepted", "[softnic][qp_table]") {
  Subject subject;
  for (const Row& row : legal_rows()) {
    INFO(state_name(row.from) << " to " << state_name(row.to));
    for_each_attribute(row.optional, [&](int bit) {
      subject.bring_to(row.from);
      CHECK(subject.modify(row.to, IBV_QP_STATE | row.required | bit) == 0);
      CHECK(subject.state() == row.to);
    });
  }
}

TEST_CASE("qp_table: an attribute that a transition does not take is EINVAL",
          "[softnic][qp_table]") {
  Subject subject;
  for (const Row& row : legal_rows()) {
    INFO(state_name(row.from) << " to " << state_name(row.to));
    int allowed = row.required | row.optional;
    if (is_migration_optional(row)) allowed |= kMigration;
    // For SQD to SQD the specification permits the current state and Linux does not; it is not
    // tested.
    if (row.from == IBV_QPS_SQD && row.to == IBV_QPS_SQD) allowed |= IBV_QP_CUR_STATE;
    subject.bring_to(row.from);
    for_each_attribute(~allowed, [&](int bit) {
      CHECK(subject.modify(row.to, IBV_QP_STATE | row.required | bit) == EINVAL);
      CHECK(subject.state() == row.from);
    });
  }
}

TEST_CASE("qp_table: without a new state the attributes of the current one apply",
          "[softnic][qp_table]") {
  Subject subject;
  subject.bring_to(IBV_QPS_INIT);
  CHECK(subject.modify(IBV_QPS_UNKNOWN, IBV_QP_ACCESS_FLAGS) == 0);
  CHECK(subject.modify(IBV_QPS_UNKNOWN, IBV_QP_AV) == EINVAL);
  CHECK(subject.state() == IBV_QPS_INIT);
  subject.bring_to(IBV_QPS_RTR);
  CHECK(subject.modify(IBV_QPS_UNKNOWN, IBV_QP_ACCESS_FLAGS) == EINVAL);  // no row RTR to RTR
  subject.bring_to(IBV_QPS_RTS);
  CHECK(subject.modify(IBV_QPS_UNKNOWN, IBV_QP_MIN_RNR_TIMER) == 0);
  CHECK(subject.modify(IBV_QPS_UNKNOWN, IBV_QP_TIMEOUT) == EINVAL);
  CHECK(subject.state() == IBV_QPS_RTS);
}
