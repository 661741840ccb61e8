// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/component/connect_network.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/socket.h"

namespace beeline::test {
namespace {

constexpr int kTickMs = 1;  // how soon a change of mode is seen

void send_all(int fd, wire::ByteView bytes) {
  static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

// The kernel drops all packets that come for the socket, acknowledgements as well.
void make_deaf(const UniqueFd& fd) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {.len = 1, .filter = &nothing};
  BL_MUST(setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
}

void reset(UniqueFd& fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd.reset();
}

}  // namespace

TestNetwork::TestNetwork(Ticket& ticket) {
  wire::Handle handle = handle_of(ticket);
  wire::SocketAddress loopback;
  loopback.bytes = {127, 0, 0, 1};
  for (std::size_t i = 0; i < 2; ++i) {
    listening_[i] = must(open_listening_socket(loopback));
    own_[i] = must(local_address(listening_[i].get()));
  }
  real_[0] = handle.address;
  handle.address = own_[0];
  wire::encode(handle, ticket.handle());
  thread_ = std::thread([this] { run(); });
}

TestNetwork::~TestNetwork() {
  stop_ = true;
  thread_.join();
}

void TestNetwork::cut(Cut how) {
  const std::lock_guard lock(mutex_);
  for (Pair& pair : pairs_) {
    if (how == Cut::kSilent) make_deaf(pair.dialed);
    if (how != Cut::kSilent) reset(pair.dialed);
    if (how != Cut::kResets) make_deaf(pair.answered);
    if (how == Cut::kResets) reset(pair.answered);
  }
  if (how == Cut::kResets) {
    pairs_.clear();
  } else {
    silent_.splice(silent_.end(), pairs_);
  }
}

void TestNetwork::cut_at(wire::MessageType type) {
  const std::lock_guard lock(mutex_);
  cut_at_ = type;
}

bool TestNetwork::has_cut() {
  const std::lock_guard lock(mutex_);
  return !cut_at_;
}

void TestNetwork::set_mode(Mode mode) {
  const std::lock_guard lock(mutex_);
  mode_ = mode;
}

std::size_t TestNetwork::held_introductions() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(pairs_, [](const Pair& pair) {
    char byte = 0;
    return ::recv(pair.dialed.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  }));
}

void TestNetwork::run() {
  while (!stop_) {
    std::vector<pollfd> all;
    {
      const std::lock_guard lock(mutex_);
      for (const UniqueFd& one : listening_) all.push_back({one.get(), POLLIN, 0});
      if (mode_ != Mode::kSilent) {
        for (const Pair& pair : pairs_) {
          for (const Way& way : pair.ways) all.push_back({way.from, POLLIN, 0});
        }
      }
    }
    ::poll(all.data(), all.size(), kTickMs);
    const std::lock_guard lock(mutex_);
    for (std::size_t end = 0; end < 2; ++end) accept(end);
    if (mode_ == Mode::kSilent) continue;
    for (Pair& pair : pairs_) {
      for (Way& way : pair.ways) {
        if (!pair.is_over) forward(way, pair);
      }
    }
    pairs_.remove_if([](const Pair& pair) { return pair.is_over; });
  }
}

void TestNetwork::accept(std::size_t end) {
  UniqueFd dialed(::accept4(listening_[end].get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!dialed) return;
  if (mode_ == Mode::kResets) return reset(dialed);
  UniqueFd answered(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const KernelAddress address = to_kernel(real_[end]);
  if (::connect(answered.get(), address.get(), address.size) != 0) return reset(dialed);
  Pair& pair = pairs_.emplace_back();
  pair.ways = {
      Way{.from = dialed.get(), .to = answered.get(), .is_introduced = false, .input = {}},
      Way{.from = answered.get(), .to = dialed.get(), .is_introduced = false, .input = {}}};
  pair.dialed = std::move(dialed);
  pair.answered = std::move(answered);
}

void TestNetwork::forward(Way& way, Pair& pair) {
  std::array<std::byte, 65536> buffer;
  const Result<std::size_t> got = receive_some(way.from, buffer);
  if (!got) {
    pair.is_over = true;
    return;
  }
  way.input.append(wire::ByteView(buffer).first(*got));
  while (true) {
    const Result<std::optional<wire::Frame>> frame = way.input.next();
    if (!frame || !*frame) return;
    if (!way.is_introduced) {
      introduce(**frame, way, pair);
    } else if (!pass(**frame, way, pair)) {
      return;
    }
  }
}

bool TestNetwork::pass(const wire::Frame& frame, Way& way, Pair& pair) {
  if (frame.type == cut_at_) {
    reset(pair.dialed);
    reset(pair.answered);
    pair.is_over = true;
    cut_at_ = std::nullopt;
    return false;
  }
  send_all(way.to, wire::make_frame(frame.type, frame.body));
  return true;
}

wire::SocketAddress TestNetwork::take_address(std::size_t end,
                                              std::optional<wire::ResumeOffer>& offer) {
  const wire::SocketAddress real = offer->addresses.front();
  offer->addresses = {own_[end]};
  return real;
}

void TestNetwork::introduce(const wire::Frame& frame, Way& way, Pair& pair) {
  wire::Bytes bytes = wire::make_frame(frame.type, frame.body);
  if (frame.type == wire::MessageType::kHello) {
    auto hello = must(wire::decode<wire::Hello>(frame.body));
    if (hello.resume) real_[1] = take_address(1, hello.resume);
    bytes = wire::encode(hello);
  } else if (frame.type == wire::MessageType::kHelloAck) {
    auto ack = must(wire::decode<wire::HelloAck>(frame.body));
    if (ack.resume) real_[0] = take_address(0, ack.resume);
    bytes = wire::encode(ack);
  }
  if (way.from == pair.dialed.get()) ++introductions_;
  send_all(way.to, bytes);
  way.is_introduced = true;
}

}  // namespace beeline::test
