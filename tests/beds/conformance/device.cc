// SPDX-License-Identifier: Apache-2.0
// Queries of devices, ports, GIDs and P_Keys.
#include <cerrno>
#include <cstring>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

std::string sane_limits(Lab& lab) {
  const ibv_device_attr& attr = lab.a.attr;
  return all_of("consistent", {{attr.max_qp > 0, "no QPs"},
                               {attr.max_qp_wr > 0, "no work requests"},
                               {attr.max_sge > 0, "no pieces"},
                               {attr.max_cq > 0 && attr.max_cqe > 0, "no CQs"},
                               {attr.max_mr > 0 && attr.max_mr_size > 0, "no regions"},
                               {attr.max_pd > 0, "no protection domains"},
                               {attr.max_qp_rd_atom > 0, "no reads"},
                               {attr.phys_port_cnt >= 1, "no ports"}});
}

std::string extended_agrees(Lab& lab) {
  ibv_device_attr_ex extended = {};
  const int answer = ::ibv_query_device_ex(lab.a.context.get(), nullptr, &extended);
  if (answer != 0) return verdict(answer);
  const ibv_device_attr& one = lab.a.attr;
  const ibv_device_attr& other = extended.orig_attr;
  return all_of("agrees", {{one.max_qp == other.max_qp, "max_qp"},
                           {one.max_qp_wr == other.max_qp_wr, "max_qp_wr"},
                           {one.max_sge == other.max_sge, "max_sge"},
                           {one.max_cqe == other.max_cqe, "max_cqe"},
                           {one.node_guid == other.node_guid, "node_guid"},
                           {one.phys_port_cnt == other.phys_port_cnt, "phys_port_cnt"}});
}

std::string port_facts(Lab& lab) {
  const ibv_port_attr& port = lab.a.port;
  return all_of("consistent", {{port.state == IBV_PORT_ACTIVE, "not active"},
                               {port.active_mtu <= port.max_mtu, "MTU above the greatest"},
                               {port.gid_tbl_len > 0, "no GIDs"},
                               {port.pkey_tbl_len > 0, "no P_Keys"},
                               {port.max_msg_sz > 0, "no messages"},
                               {lab.a.is_ethernet() || port.lid != 0, "no LID"}});
}

std::string bad_port(Lab& lab, std::uint8_t number) {
  ibv_port_attr port = {};
  return verdict(::ibv_query_port(lab.a.context.get(), number, &port));
}

std::string gid_past_table(Lab& lab) {
  ibv_gid gid = {};
  const int index = lab.a.port.gid_tbl_len;
  return ::ibv_query_gid(lab.a.context.get(), kPort, index, &gid) == 0 ? "accepted" : "refused";
}

std::string gid_bad_port(Lab& lab) {
  ibv_gid gid = {};
  return ::ibv_query_gid(lab.a.context.get(), 99, 0, &gid) == 0 ? "accepted" : "refused";
}

std::string gid_ex_past_table(Lab& lab) {
  ibv_gid_entry entry = {};
  const auto index = static_cast<std::uint32_t>(lab.a.port.gid_tbl_len);
  return verdict(::ibv_query_gid_ex(lab.a.context.get(), kPort, index, &entry, 0));
}

std::string gid_ex_empty(Lab& lab) {
  ibv_gid_entry entry = {};
  const auto last = static_cast<std::uint32_t>(lab.a.port.gid_tbl_len) - 1;
  return verdict(::ibv_query_gid_ex(lab.a.context.get(), kPort, last, &entry, 0));
}

std::string gid_table_agrees(Lab& lab) {
  std::vector<ibv_gid_entry> table(1024);
  ibv_context* context = lab.a.context.get();
  const ssize_t count = ::ibv_query_gid_table(context, table.data(), table.size(), 0);
  if (count <= 0) return count == 0 ? "empty" : verdict(static_cast<int>(count));
  bool own_is_there = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    ibv_gid gid = {};
    const auto port = static_cast<std::uint8_t>(table[i].port_num);
    const auto index = static_cast<int>(table[i].gid_index);
    if (::ibv_query_gid(context, port, index, &gid) != 0) return "an entry cannot be queried";
    if (std::memcmp(&gid, &table[i].gid, sizeof gid) != 0) return "an entry differs";
    own_is_there = own_is_there || table[i].gid_index == lab.a.gid_index;
  }
  return own_is_there ? "agrees" : "own GID missing";
}

std::string gid_table_too_small(Lab& lab) {
  if (!lab.a.is_ethernet()) return kDoesNotApply;  // it has one entry
  ibv_gid_entry entry = {};
  const ssize_t count = ::ibv_query_gid_table(lab.a.context.get(), &entry, 1, 0);
  return count >= 0 ? "accepted" : verdict(static_cast<int>(count));
}

std::string default_pkey(Lab& lab) {
  __be16 pkey = 0;
  if (::ibv_query_pkey(lab.a.context.get(), kPort, 0, &pkey) != 0) return verdict_of_errno(false);
  return pkey == 0xffff ? "ffff" : "another";
}

std::string pkey_past_table(Lab& lab) {
  __be16 pkey = 0;
  const int index = lab.a.port.pkey_tbl_len;
  return ::ibv_query_pkey(lab.a.context.get(), kPort, index, &pkey) == 0 ? "accepted" : "refused";
}

std::string busy_pd_with_region(Lab& lab) {
  const Pd pd(::ibv_alloc_pd(lab.a.context.get()));
  const Region region(pd.get(), 4096);
  return verdict(::ibv_dealloc_pd(pd.get()));
}

std::string busy_pd_with_qp(Lab& lab) {
  End end(lab.a);
  must_accept(end.memory.forget(), "ibv_dereg_mr");
  return verdict(::ibv_dealloc_pd(end.pd.get()));
}

}  // namespace

void add_device(Catalogue& all) {
  const Catalogue ours = {
      {"device.limits.sane", "consistent", sane_limits},
      {"device.limits.extended_query", "agrees", extended_agrees},
      {"port.query.facts", "consistent", port_facts},
      {"port.query.port_0", "refused EINVAL", [](Lab& lab) { return bad_port(lab, 0); }},
      {"port.query.port_99", "refused EINVAL", [](Lab& lab) { return bad_port(lab, 99); }},
      {"gid.query.past_table", "refused", gid_past_table},
      {"gid.query.bad_port", "refused", gid_bad_port},
      {"gid.query_ex.past_table", "refused EINVAL", gid_ex_past_table},
      {"gid.query_ex.empty_entry", "refused ENODATA", gid_ex_empty},
      {"gid.table.agrees", "agrees", gid_table_agrees},
      {"gid.table.too_small", "refused -EINVAL", gid_table_too_small},
      {"pkey.default", "ffff", default_pkey},
      {"pkey.past_table", "refused", pkey_past_table},
      {"pd.dealloc.with_region", "refused EBUSY", busy_pd_with_region},
      {"pd.dealloc.with_qp", "refused EBUSY", busy_pd_with_qp},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
