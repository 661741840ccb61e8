// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/cm/cm_text.h"

#include <cerrno>
#include <cstring>

#include "common/base/host.h"
#include "plugin/connect/socket/address.h"

namespace beeline {
namespace {

std::string end_text(const wire::SocketAddress& address, const std::string& name) {
  if (address == wire::SocketAddress{}) return name;
  return (address.port == 0 ? ip_text(address) : text(address)) + " (" + name + ")";
}

std::string status_text(const verbs::CmEvent& event) {
  if (event.status < 0) return std::strerror(-event.status);
  return "reason " + std::to_string(event.status);
}

struct Meaning {
  const char* what;
  bool is_about_route;
};

Meaning meaning_of(rdma_cm_event_type type) {
  // Not a switch: the installed librdmacm may have types that its header here does not.
  if (type == RDMA_CM_EVENT_ADDR_ERROR) return {"the address was not resolved", true};
  if (type == RDMA_CM_EVENT_ROUTE_ERROR) return {"the route was not resolved", true};
  if (type == RDMA_CM_EVENT_UNREACHABLE) return {"the other end did not answer", true};
  if (type == RDMA_CM_EVENT_CONNECT_ERROR) return {"the connection failed", true};
  if (type == RDMA_CM_EVENT_REJECTED) {
    return {"the other end rejected the connection (the log of its host may say why)", false};
  }
  if (type == RDMA_CM_EVENT_DISCONNECTED) {
    return {"the other end closed the connection (the log of its host may say why)", false};
  }
  if (type == RDMA_CM_EVENT_DEVICE_REMOVAL) return {"the device was removed", false};
  if (type == RDMA_CM_EVENT_ADDR_CHANGE) return {"the interface's address changed", true};
  return {"an unexpected event arrived", false};
}

}  // namespace

std::string CmEnds::text() const {
  return end_text(ours, own_name(*device)) + " and " + end_text(theirs, peer);
}

std::string own_name(const Device& device) {
  return host_name() + " " + device.ibdev + (device.netdev.empty() ? "" : " on " + device.netdev);
}

std::string no_channel_text(const Error& error) {
  if (error.sys_errno != ENOENT && error.sys_errno != ENODEV && error.sys_errno != ENXIO) {
    return "librdmacm cannot be used on " + host_name() + ": " + describe(error);
  }
  return "librdmacm cannot be used on " + host_name() +
         ": there is no /dev/infiniband/rdma_cm (run modprobe rdma_ucm; in a container, make "
         "that device visible)";
}

std::string no_netdev_text(const Device& device) {
  return own_name(device) +
         " has no network interface in this network namespace; librdmacm finds a device by the "
         "address of its interface";
}

std::string no_address_text(const Device& device) {
  return own_name(device) +
         " has no IP address, and librdmacm finds a device by that: add one with ip addr add "
         "ADDRESS/PREFIX dev " +
         device.netdev;
}

std::string listen_failure_text(const Error& error, const Device& device,
                                const wire::SocketAddress& address) {
  std::string text = "librdmacm cannot listen on " + ip_text(address) + " (" + own_name(device) +
                     "): " + describe(error);
  if (error.sys_errno == ENODEV) text += "; is the interface up (ip link)?";
  return text;
}

Outcome<void> check_device(const verbs::CmId& id, const Device& device,
                           const wire::SocketAddress& address) {
  const std::string chosen = id.device();
  if (chosen == device.ibdev) return {};
  if (chosen.empty()) {
    return fail("librdmacm finds no RDMA device by the address " + ip_text(address) + " of " +
                own_name(device));
  }
  return fail(
      "librdmacm chooses " + chosen + " for the address " + ip_text(address) + ", not " +
      own_name(device) +
      ": give each RDMA device a network interface of its own, or remove the other device (rdma "
      "link show)");
}

std::string route_advice(const CmEnds& ends) {
  return "check the route between both (ip route get " + ip_text(ends.theirs) + " from " +
         ip_text(ends.ours) + "; ping -I " + ends.device->netdev + " " + ip_text(ends.theirs) + ")";
}

std::string step_failure_text(const Error& error, const CmEnds& ends) {
  std::string text = "librdmacm, between " + ends.text() + ": " + describe(error);
  if (error.sys_errno == ENETUNREACH || error.sys_errno == EHOSTUNREACH ||
      error.sys_errno == ETIMEDOUT || error.sys_errno == ENODEV) {
    text += "; " + route_advice(ends);
  }
  return text;
}

std::string event_failure_text(const verbs::CmEvent& event, const std::string& doing,
                               const CmEnds& ends) {
  const Meaning meaning = meaning_of(event.type);
  std::string text = "librdmacm, between " + ends.text() + ", failed while " + doing + ": " +
                     meaning.what + " (" + status_text(event) + ")";
  if (meaning.is_about_route) text += "; " + route_advice(ends);
  return text;
}

}  // namespace beeline
