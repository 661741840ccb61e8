// SPDX-License-Identifier: Apache-2.0
//
// Asks the kernel by netlink twice: for the index of the device with this name, then for the
// network interface of its port.
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/fd.h"
#include "plugin/device/netdev.h"

namespace beeline {
namespace {

using Datagram = std::string;

void put(Datagram& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

Datagram make_request(int command, int flags) {
  Datagram request;
  const nlmsghdr header{
      .nlmsg_len = 0,
      .nlmsg_type = static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)),
      .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags),
      .nlmsg_seq = 1,
      .nlmsg_pid = 0};
  put(request, &header, sizeof header);
  return request;
}

// Adds an attribute to the request. All of them are numbers.
void put_number(Datagram& request, std::uint16_t type, std::uint32_t value) {
  const nlattr attribute{.nla_len = NLA_HDRLEN + sizeof value, .nla_type = type};
  put(request, &attribute, sizeof attribute);
  put(request, &value, sizeof value);
}

struct Attributes {
  std::optional<std::uint32_t> index;  // of the device
  std::string name;                    // of the device
  std::string netdev;
};

std::string text_of(std::string_view payload) {
  return std::string(payload.substr(0, payload.find('\0')));
}

Attributes parse_attributes(std::string_view payload) {
  Attributes found;
  while (payload.size() >= NLA_HDRLEN) {
    nlattr attribute;
    std::memcpy(&attribute, payload.data(), sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > payload.size()) break;
    const std::string_view value = payload.substr(NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN);
    const int type = attribute.nla_type & NLA_TYPE_MASK;
    if (type == RDMA_NLDEV_ATTR_DEV_INDEX && value.size() == sizeof(std::uint32_t)) {
      std::memcpy(&found.index.emplace(), value.data(), value.size());
    }
    if (type == RDMA_NLDEV_ATTR_DEV_NAME) found.name = text_of(value);
    if (type == RDMA_NLDEV_ATTR_NDEV_NAME) found.netdev = text_of(value);
    payload.remove_prefix(std::min<std::size_t>(NLA_ALIGN(attribute.nla_len), payload.size()));
  }
  return found;
}

// Parses the messages in one datagram. False: it was the last one.
bool collect(std::string_view datagram, std::vector<Attributes>& answers) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size()) return false;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) return false;
    answers.push_back(
        parse_attributes(datagram.substr(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN)));
    if ((header.nlmsg_flags & NLM_F_MULTI) == 0) return false;
    datagram.remove_prefix(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
  return true;
}

std::vector<Attributes> ask(int socket, Datagram request) {
  const auto size = static_cast<std::uint32_t>(request.size());
  std::memcpy(request.data() + offsetof(nlmsghdr, nlmsg_len), &size, sizeof size);
  if (::send(socket, request.data(), request.size(), MSG_DONTWAIT) < 0) return {};
  std::vector<Attributes> answers;
  std::array<char, 32768> datagram;  // the kernel does not send larger ones
  // The kernel answers within send() or recv(), so there is no need to wait.
  for (bool more = true; more;) {
    const ssize_t got = ::recv(socket, datagram.data(), datagram.size(), MSG_DONTWAIT);
    more = got > 0 && collect({datagram.data(), static_cast<std::size_t>(got)}, answers);
  }
  return answers;
}

}  // namespace

std::string netdev_by_netlink(const std::string& ibdev, std::uint8_t port) {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  if (!socket) return {};
  for (const Attributes& device : ask(socket.get(), make_request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP))) {
    if (device.name != ibdev || !device.index) continue;
    Datagram request = make_request(RDMA_NLDEV_CMD_PORT_GET, 0);
    put_number(request, RDMA_NLDEV_ATTR_DEV_INDEX, *device.index);
    put_number(request, RDMA_NLDEV_ATTR_PORT_INDEX, port);
    const std::vector<Attributes> answers = ask(socket.get(), std::move(request));
    return answers.empty() ? std::string() : answers.front().netdev;
  }
  return {};
}

}  // namespace beeline
