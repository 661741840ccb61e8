// SPDX-License-Identifier: Apache-2.0
//
// Parties, and what /proc says of them.
#include "tests/component/connect_rig.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

namespace beeline::test {

ControlOptions control_options() {
  ControlOptions options;
  options.interface = "lo";
  options.family = "AF_INET";
  options.connect_timeout = kPatience;
  options.half_open_timeout = kPatience;
  options.peer_timeout = kPatience;
  options.sender = {.memory_bytes = 16384,
                    .window_bytes = 16384,
                    .send_depth = 16,
                    .receive_depth = 4,
                    .inline_bytes = 64};
  options.receiver = {.memory_bytes = 4096,
                      .window_bytes = 0,
                      .send_depth = 16,
                      .receive_depth = 16,
                      .inline_bytes = 64};
  return options;
}

Listener* Party::listen(Ticket& ticket, const std::string& device) {
  return must(plane_->listen(find_device(*table_, device), ticket.handle()));
}

Result<Made> Party::connect(Ticket& ticket, const std::string& device) {
  return plane_->connect(find_device(*table_, device), ticket.handle());
}

Made Party::wait_connect(Ticket& ticket, const std::string& device) {
  Made made;
  wait_for(
      [&] {
        made = must(connect(ticket, device));
        return made != nullptr;
      },
      "a connect");
  return made;
}

Made Party::wait_accept(Listener* listener) {
  Made made;
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
        const Result<Made> made = connect(ticket, device);
        if (made && *made != nullptr) throw MustError("a connect succeeded that should not");
        if (!made) error = made.error();
        return !made;
      },
      "a connect that fails");
  return error;
}

Comm2 join(Party& listening, Party& connecting) {
  Ticket ticket;
  Listener* const listener = listening.listen(ticket);
  Comm2 comm;
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

void prove_write(Connection& receiver, Connection& sender) {
  constexpr std::uint64_t kWord = 0x0123'4567'89ab'cdef;
  BL_MUST(receiver.window.length >= sizeof kWord);
  *receiver.memory.at<std::uint64_t>() = kWord;
  ibv_sge sge{
      .addr = receiver.memory.address(), .length = sizeof kWord, .lkey = receiver.memory.lkey(0)};
  ibv_send_wr work{};
  work.sg_list = &sge;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = receiver.window.address;
  work.wr.rdma.rkey = receiver.window.rkeys[0];
  ibv_send_wr* bad = nullptr;
  BL_MUST_OK(ibv_post_send(receiver.paths[0].qp.get(), &work, &bad));
  ibv_wc wc{};
  wait_for([&] { return ibv_poll_cq(receiver.paths[0].cq.get(), 1, &wc) == 1; },
           "the completion of a write");
  BL_MUST(wc.status == IBV_WC_SUCCESS);
  BL_MUST(*sender.memory.at<std::uint64_t>() == kWord);
}

std::size_t threads_named(const std::string& name) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::ifstream(entry.path() / "comm") >> found;
    if (found == name) ++count;
  }
  return count;
}

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

}  // namespace beeline::test
