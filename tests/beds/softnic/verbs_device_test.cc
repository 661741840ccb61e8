// SPDX-License-Identifier: Apache-2.0
//
// The device list, contexts and device attributes.
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// From now on, the kernel starts no thread in this process, as if there were no memory for it.
void refuse_threads() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  BL_MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  BL_MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

}  // namespace

TEST_CASE("device: the list names the first host's devices and ends with null",
          "[softnic][device]") {
  const TestFabric fabric;
  const DeviceList list;
  REQUIRE(list.get() != nullptr);
  REQUIRE(list.count() == 2);
  CHECK(std::string(ibv_get_device_name(list[0])) == "softnic0");
  CHECK(std::string(ibv_get_device_name(list[1])) == "softnic1");
  CHECK(list[2] == nullptr);
  for (int i = 0; i < 2; ++i) {
    CHECK(list[i]->node_type == IBV_NODE_CA);
    CHECK(list[i]->transport_type == IBV_TRANSPORT_IB);
    CHECK(ibv_get_device_guid(list[i]) != 0);
    CHECK(ibv_get_device_index(list[i]) >= 0);
  }
  CHECK(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
  CHECK(ibv_get_device_index(list[0]) != ibv_get_device_index(list[1]));
}

TEST_CASE("device: SOFTNIC_HOST chooses whose devices are listed", "[softnic][device]") {
  const TestFabric fabric;
  std::set<std::uint64_t> guids;
  for (const char* host : {"h0", "h1"}) {
    TestFabric::choose_host(host);
    const DeviceList list;
    REQUIRE(list.count() == 2);
    for (int i = 0; i < 2; ++i) guids.insert(ibv_get_device_guid(list[i]));
  }
  CHECK(guids.size() == 4);
}

TEST_CASE("device: without a fabric there are no devices", "[softnic][device]") {
  const TestFabric fabric;
  setenv("SOFTNIC_FABRIC", "test-no-such-fabric", 1);
  const DeviceList list;
  CHECK((list.get() == nullptr || list.count() == 0));
}

TEST_CASE("device: a context outlives the list it came from", "[softnic][device]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");  // frees its list
  ibv_port_attr port{};
  CHECK(ibv_query_port(context.get(), 1, &port) == 0);
  CHECK(std::string(ibv_get_device_name(context->device)) == "softnic0");
  CHECK(context->async_fd >= 0);
  CHECK(context->num_comp_vectors >= 1);
}

TEST_CASE("device: if no thread can be started it is not opened, and opened ones work on",
          "[softnic][device]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[](Peer&) {
                                     const DeviceList list;
                                     refuse_threads();
                                     BL_MUST(ibv_open_device(list[0]) == nullptr);
                                     BL_MUST(errno == EAGAIN);
                                   },
                                   [](Peer&) {
                                     Endpoint a("softnic0");
                                     Endpoint b("softnic1");
                                     refuse_threads();
                                     connect_both(a.qp, b.qp);
                                     Buffer from = a.buffer(64);
                                     Buffer to = b.buffer(64);
                                     // It waits for its receive, which is the engine's work.
                                     BL_MUST_OK(post(a.qp, send_work(from.all(), 1)));
                                     BL_MUST_OK(post(b.qp, recv_work(to.all(), 2)));
                                     must_complete(a.send_cq.get(), 1);
                                     must_complete(b.recv_cq.get(), 2);
                                   }});
}

TEST_CASE("device: attributes agree between the plain and the extended query",
          "[softnic][device]") {
  const TestFabric fabric;
  const ContextPtr context = open_device("softnic0");
  ibv_device_attr attr{};
  REQUIRE(ibv_query_device(context.get(), &attr) == 0);
  ibv_device_attr_ex extended{};
  REQUIRE(ibv_query_device_ex(context.get(), nullptr, &extended) == 0);
  const ibv_device_attr& same = extended.orig_attr;
  CHECK(std::string(attr.fw_ver) == same.fw_ver);
  CHECK(attr.node_guid == same.node_guid);
  CHECK(attr.max_mr_size == same.max_mr_size);
  CHECK(attr.max_qp_wr == same.max_qp_wr);
  CHECK(attr.max_sge == same.max_sge);
  CHECK(attr.device_cap_flags == same.device_cap_flags);
  CHECK(attr.phys_port_cnt == same.phys_port_cnt);

  CHECK(attr.node_guid == ibv_get_device_guid(context->device));
  CHECK(attr.sys_image_guid != 0);
  CHECK(attr.phys_port_cnt == 1);
  CHECK(attr.max_mr_size >= std::uint64_t{1} << 40);
  CHECK((attr.page_size_cap & 4096) != 0);
  CHECK(attr.max_qp >= 128);
  CHECK(attr.max_qp_wr >= 1024);
  CHECK(attr.max_sge >= 4);
  CHECK(attr.max_sge_rd >= 1);
  CHECK(attr.max_cq >= 128);
  CHECK(attr.max_cqe >= 1024);
  CHECK(attr.max_mr >= 1024);
  CHECK(attr.max_pd >= 1);
  CHECK(attr.max_qp_rd_atom >= 1);
  CHECK(attr.max_qp_init_rd_atom >= 1);
  CHECK(attr.max_pkeys >= 1);
  CHECK(attr.atomic_cap == IBV_ATOMIC_HCA);
}

TEST_CASE("device: ibdev_path leads into the host's sysfs tree", "[softnic][device]") {
  const TestFabric fabric;
  const DeviceList list;
  REQUIRE(list.count() == 2);
  const std::string path = list[0]->ibdev_path;
  const std::string root = fabric.fabric().sysfs_root("h0");
  CHECK(path == root + "/class/infiniband/softnic0");
  CHECK(is_directory(path));
  CHECK(first_line(path + "/ports/1/state") == "4: ACTIVE");
  CHECK(first_line(path + "/ports/1/link_layer") == "Ethernet");
  CHECK(std::string(list[0]->dev_name).rfind("uverbs", 0) == 0);

  const ContextPtr context = open_device("softnic0");
  ibv_gid gid{};
  REQUIRE(ibv_query_gid(context.get(), 1, 3, &gid) == 0);
  ibv_gid shown{};
  const std::string text = first_line(path + "/ports/1/gids/3");
  REQUIRE(inet_pton(AF_INET6, text.c_str(), &shown) == 1);
  CHECK(std::memcmp(&shown, &gid, sizeof(gid)) == 0);
  CHECK(first_line(path + "/ports/1/gid_attrs/types/3") == "RoCE v2");
}

TEST_CASE("device: codes have the texts of libibverbs", "[softnic][device]") {
  for (int i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) {
    CHECK(ibv_wc_status_str(static_cast<ibv_wc_status>(i)) != nullptr);
  }
  for (int i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_WQ_FATAL; ++i) {
    CHECK(ibv_event_type_str(static_cast<ibv_event_type>(i)) != nullptr);
  }
  // As libibverbs has them.
  using Text = std::string;
  CHECK(ibv_wc_status_str(IBV_WC_SUCCESS) == Text("success"));
  CHECK(ibv_wc_status_str(IBV_WC_LOC_PROT_ERR) == Text("local protection error"));
  CHECK(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR) == Text("Work Request Flushed Error"));
  CHECK(ibv_wc_status_str(IBV_WC_REM_INV_REQ_ERR) == Text("remote invalid request error"));
  CHECK(ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR) == Text("remote access error"));
  CHECK(ibv_wc_status_str(IBV_WC_REM_OP_ERR) == Text("remote operation error"));
  CHECK(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR) == Text("transport retry counter exceeded"));
  CHECK(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR) == Text("RNR retry counter exceeded"));
  CHECK(ibv_event_type_str(IBV_EVENT_CQ_ERR) == Text("CQ error"));
  CHECK(ibv_event_type_str(IBV_EVENT_PORT_ERR) == Text("port error"));
  CHECK(ibv_event_type_str(IBV_EVENT_QP_ACCESS_ERR) ==
        Text("local access violation work queue error"));
  CHECK(ibv_port_state_str(IBV_PORT_ACTIVE) == Text("active"));
  CHECK(ibv_node_type_str(IBV_NODE_CA) == Text("InfiniBand channel adapter"));
}
