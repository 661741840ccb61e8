// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/connect_rig.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "plugin/wire/handle.h"

namespace beeline::test {

ControlOptions control_options() {
  ControlOptions options;
  options.interface = "lo";
  options.family = "AF_INET";
  options.connect_timeout = kPatience;
  options.half_open_timeout = kPatience;
  options.peer_timeout = kPatience;
  options.sender.by_paths.fill({.memory_bytes = 16384,
                                .window_bytes = 16384,
                                .send_depth = 16,
                                .receive_depth = 4,
                                .inline_bytes = 64});
  options.receiver.by_paths.fill({.memory_bytes = 4096,
                                  .window_bytes = 0,
                                  .send_depth = 16,
                                  .receive_depth = 16,
                                  .inline_bytes = 64});
  return options;
}

Listener* Party::listen(Ticket& ticket, const std::string& device, const CommSettings& settings) {
  return must(
      plane_->listen(table_->alone(find_device(*table_, device)), ticket.handle(), settings));
}

// A call that finds the control thread busy has not begun an attempt, so it is repeated.
Result<ConnectionPtr> Party::connect(Ticket& ticket, const std::string& device,
                                     const CommSettings& settings) {
  const Device& chosen = find_device(*table_, device);
  for (;;) {
    Result<ConnectionPtr> made = plane_->connect(table_->alone(chosen), ticket.handle(), settings);
    if (!made || *made != nullptr || wire::attempt_in(ticket.handle()) != 0) return made;
    sched_yield();
  }
}

ConnectionPtr Party::wait_connect(Ticket& ticket, const std::string& device) {
  ConnectionPtr made;
  wait_for(
      [&] {
        made = must(connect(ticket, device));
        return made != nullptr;
      },
      "a connect");
  return made;
}

ConnectionPtr Party::wait_accept(Listener* listener) {
  ConnectionPtr made;
  wait_for(
      [&] {
        made = must(accept(listener));
        return made != nullptr;
      },
      "an accept");
  return made;
}

Error Party::wait_connect_error(Ticket& ticket, const std::string& device) {
  Error error;
  wait_for(
      [&] {
        const Result<ConnectionPtr> made = connect(ticket, device);
        if (made && *made != nullptr) throw MustError("a connect succeeded that should not");
        if (!made) error = made.error();
        return !made;
      },
      "a connect that fails");
  return error;
}

CommPair join(Party& listening, Party& connecting) {
  Ticket ticket;
  Listener* const listener = listening.listen(ticket);
  CommPair comm;
  wait_for(
      [&] {
        if (comm.sender == nullptr) comm.sender = must(connecting.connect(ticket));
        if (comm.receiver == nullptr) comm.receiver = must(listening.accept(listener));
        return comm.sender != nullptr && comm.receiver != nullptr;
      },
      "a comm");
  listening.plane().close(listener);
  return comm;
}

void prove_write(Connection& receiver, Connection& sender, std::size_t path) {
  const PathResources& used = receiver.paths.at(path);
  const std::uint64_t word = 0x0123'4567'89ab'cdef + path;
  BL_MUST(receiver.window.length >= sizeof word);
  *receiver.memory.at<std::uint64_t>() = word;
  ibv_sge sge{.addr = receiver.memory.address(),
              .length = sizeof word,
              .lkey = receiver.memory.lkey(used.rail)};
  ibv_send_wr work{};
  work.sg_list = &sge;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = receiver.window.address;
  work.wr.rdma.rkey = receiver.window.rkeys[used.peer_rail];
  ibv_send_wr* bad = nullptr;
  BL_MUST_OK(ibv_post_send(used.queues.qp.get(), &work, &bad));
  ibv_wc wc{};
  wait_for([&] { return ibv_poll_cq(used.queues.cq.get(), 1, &wc) == 1; },
           "the completion of a write");
  BL_MUST(wc.status == IBV_WC_SUCCESS);
  BL_MUST(*sender.memory.at<std::uint64_t>() == word);
}

namespace {

std::atomic<int> counted_objects{0};

ibv_qp* count_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp* const qp = softnic_api().create_qp(pd, init);
  if (qp != nullptr) ++counted_objects;
  return qp;
}

int uncount_qp(ibv_qp* qp) {
  --counted_objects;
  return softnic_api().destroy_qp(qp);
}

ibv_cq* count_cq(ibv_context* context, int entries, void* cookie, ibv_comp_channel* channel,
                 int vector) {
  ibv_cq* const cq = softnic_api().create_cq(context, entries, cookie, channel, vector);
  if (cq != nullptr) ++counted_objects;
  return cq;
}

int uncount_cq(ibv_cq* cq) {
  --counted_objects;
  return softnic_api().destroy_cq(cq);
}

}  // namespace

CountedVerbs::CountedVerbs() : api_(softnic_api()) {
  counted_objects = 0;
  api_.create_qp = count_qp;
  api_.destroy_qp = uncount_qp;
  api_.create_cq = count_cq;
  api_.destroy_cq = uncount_cq;
}

std::unique_ptr<DeviceTable> CountedVerbs::scan(const TestFabric& fabric) const {
  TestFabric::choose_host("h0");
  return must(DeviceTable::scan(api_, device_options(fabric)));
}

int CountedVerbs::objects() { return counted_objects; }

std::vector<pid_t> thread_ids_named(const std::string& name) {
  std::vector<pid_t> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::ifstream(entry.path() / "comm") >> found;
    if (found == name) ids.push_back(std::stoi(entry.path().filename()));
  }
  return ids;
}

std::size_t threads_named(const std::string& name) { return thread_ids_named(name).size(); }

namespace {

std::size_t sockets_in(int state) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == state) {
      ++count;
    }
  }
  return count;
}

}  // namespace

std::size_t tcp_connections() { return sockets_in(TCP_ESTABLISHED); }
std::size_t listening_sockets() { return sockets_in(TCP_LISTEN); }

void wait_for_quiet() {
  wait_for([] { return threads_named("beeline-ctl") == 0; }, "the control threads' end");
  wait_for([] { return tcp_connections() + listening_sockets() == 0; }, "the sockets' end");
}

}  // namespace beeline::test
