// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/connect_raw_peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace beeline::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void must_be_readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
  BL_MUST(::poll(&one, 1, static_cast<int>(patience.count())) == 1);
}

}  // namespace

wire::Handle handle_of(Ticket& ticket) { return must(wire::decode_handle(ticket.handle())); }

wire::Hello hello_for(const wire::Handle& handle, std::uint32_t process) {
  wire::Hello hello{.host = "elsewhere", .pid = 99, .listener = handle.listener};
  hello.process.fill(0xff);  // greater than any other, so that its dial is the one that is dropped
  for (std::size_t i = 0; i < 4; ++i) {
    hello.process[8 + i] = static_cast<std::uint8_t>(process >> (8 * i));
  }
  hello.token = handle.token;
  return hello;
}

wire::Bytes first_bytes(const wire::Bytes& bytes, std::size_t size) {
  return wire::Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all))) - 1;  // one lists the folder
}

UniqueFd idle_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  BL_MUST(socket);
  return socket;
}

void dial(const UniqueFd& socket, const wire::Handle& handle) {
  const sockaddr_in address = loopback(handle.address.port);
  BL_MUST(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0);
}

RawPeer::RawPeer(const wire::Handle& handle) : fd_(idle_socket()) { dial(fd_, handle); }

void RawPeer::send(const wire::Bytes& bytes) {
  BL_MUST(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

void RawPeer::send(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  send(wire::Bytes(first, first + text.size()));
}

bool RawPeer::try_send(const wire::Bytes& bytes) {
  const ssize_t said = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return said == static_cast<ssize_t>(bytes.size());
}

void RawPeer::introduce(const wire::Hello& hello) {
  send(wire::encode(hello));
  receive_message<wire::HelloAck>();
}

void RawPeer::sync() {
  wire::Accept nobodys{.comm = UINT32_MAX, .our_comm = UINT32_MAX - 1};
  nobodys.paths.emplace_back();
  send(wire::encode(nobodys));
  BL_MUST(receive_message<wire::Reject>().comm == UINT32_MAX - 1);
}

bool RawPeer::receive_some() {
  must_be_readable(fd_.get());
  std::array<std::byte, 4096> room;
  const ssize_t got = ::recv(fd_.get(), room.data(), room.size(), 0);
  if (got <= 0) return false;
  input_.append(wire::ByteView(room).first(static_cast<std::size_t>(got)));
  return true;
}

wire::Frame RawPeer::receive_frame() {
  for (;;) {
    if (auto frame = must(input_.next())) return *std::move(frame);
    BL_MUST(receive_some());
  }
}

void RawPeer::must_be_dropped() { BL_MUST(!receive_some()); }

void RawPeer::must_be_dropped_in_the_end() {
  while (receive_some()) {
  }
}

bool RawPeer::is_dropped() {
  pollfd one{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1 && !receive_some();
}

void RawPeer::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd_.reset();
}

FakeListener::FakeListener(std::uint8_t first_byte)
    : listening_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  BL_MUST(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  BL_MUST(::listen(listening_.get(), 16) == 0);
  BL_MUST(getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  handle_.listener = 1;
  static std::uint8_t last_number = 0;
  handle_.process.fill(first_byte);
  handle_.process[15] = ++last_number;  // another process each time
  handle_.token.fill(last_number);
  handle_.address.port = ntohs(address.sin_port);
  handle_.address.bytes = {127, 0, 0, 1};
  handle_.host = "faraway";
  handle_.device = "fake0:1";
  wire::encode(handle_, ticket_.handle());
}

RawPeer FakeListener::answer() {
  must_be_readable(listening_.get());
  return RawPeer(UniqueFd(::accept(listening_.get(), nullptr, nullptr)));
}

RawPeer FakeListener::welcome() {
  RawPeer dialer = answer();
  const auto hello = dialer.receive_message<wire::Hello>();
  BL_MUST(hello.token == handle_.token && hello.listener == handle_.listener);
  dialer.send(wire::encode(wire::HelloAck{.version = wire::kOurVersions.most,
                                          .process = handle_.process,
                                          .host = "faraway",
                                          .pid = 4711}));
  return dialer;
}

wire::Accept accept_for(const wire::Connect& connect) {
  wire::Accept accept{.comm = connect.comm, .our_comm = 7};
  wire::PathAnswer& answer = accept.paths.emplace_back();
  answer.qp = connect.paths.at(0).qp;
  answer.qp.device = "fake0";
  const wire::GidEntry& gid = connect.paths[0].gids.at(0);
  answer.gid = gid.gid;
  answer.gid_index = static_cast<std::uint8_t>(gid.index);
  answer.mtu = 1;
  return accept;
}

}  // namespace beeline::test
