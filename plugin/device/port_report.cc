// SPDX-License-Identifier: Apache-2.0
//
// Compares the state of a port with its state when a connection was set up.
#include "plugin/device/port_report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "common/base/clock.h"
#include "plugin/device/agree.h"
#include "plugin/device/device.h"
#include "plugin/verbs/query.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

void add(std::string* text, const std::string& more) {
  if (more.empty()) return;
  if (!text->empty()) *text += " and ";
  *text += more;
}

std::string ago(std::int64_t then_ns, std::int64_t now_ns) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f s ago", static_cast<double>(now_ns - then_ns) / 1e9);
  return text;
}

std::string trouble_with_link(const OwnPortState& port, const PortHistory& history,
                              std::int64_t since_ns, std::int64_t now_ns) {
  // A card that was removed, and whose driver waits for the device's users before it reports that.
  if (port.query_errno != 0) {
    return std::string("its port cannot be queried (") + std::strerror(port.query_errno) + ')';
  }
  if (port.state && !port.is_active()) {
    return std::string("its port is ") + verbs::port_state_text(*port.state);
  }
  const std::int64_t down = history.went_down_ns();
  const std::int64_t up = history.came_up_ns();
  if (down == 0 || std::max(down, up) < since_ns) return {};
  if (down <= up) return "its port was down until " + ago(up, now_ns);
  return "its port reported an error " + ago(down, now_ns);
}

std::string trouble_with_gid(const OwnAddress::GidPlace& was, const Gid& now) {
  if (was.gid == now) return {};
  const std::string place = "its GID " + std::to_string(was.index) + ", " + to_string(was.gid);
  return place + (is_zero(now) ? ", is gone" : ", has become " + to_string(now));
}

std::string trouble_with_pkey(const OwnAddress::PkeyPlace& was, std::uint16_t now) {
  if (was.pkey == now) return {};
  const std::string place = "its P_Key " + std::to_string(was.index) + ", " + key_text(was.pkey);
  return place + (now == 0 ? ", is gone" : ", has become " + key_text(now));
}

}  // namespace

OwnPortState query_own_port(const Device& device, const OwnAddress& own) {
  OwnPortState port;
  const verbs::Api& api = device.api();
  ibv_context* const context = device.context->raw();
  const auto read = verbs::query_port(api, context, device.port);
  if (!read) {
    port.query_errno = read.error().sys_errno;
    return port;
  }
  port.state = read->attr.state;
  port.lid = read->attr.lid;
  if (own.gid) {
    const auto gid = verbs::query_gid(api, context, device.port, own.gid->index);
    if (gid) std::copy(std::begin(gid->raw), std::end(gid->raw), port.gid.emplace().begin());
  }
  if (own.pkey) {
    const auto pkey = verbs::query_pkey(api, context, device.port, own.pkey->index);
    if (pkey) port.pkey = *pkey;
  }
  return port;
}

PortReport report_on_port(const OwnPortState& port, const OwnAddress& own,
                          const PortHistory& history, std::int64_t since_ns, std::int64_t now_ns) {
  PortReport report;
  add(&report.trouble, trouble_with_link(port, history, since_ns, now_ns));
  if (own.gid && port.gid) add(&report.trouble, trouble_with_gid(*own.gid, *port.gid));
  if (own.pkey && port.pkey) add(&report.trouble, trouble_with_pkey(*own.pkey, *port.pkey));
  if (own.lid != 0 && port.lid != 0 && port.lid != own.lid) {
    add(&report.trouble,
        "its LID " + std::to_string(own.lid) + " has become " + std::to_string(port.lid));
  }
  const auto remark = [&](const char* what, std::int64_t changed_ns) {
    if (changed_ns != 0 && changed_ns >= since_ns) {
      add(&report.remark, std::string(what) + " changed " + ago(changed_ns, now_ns));
    }
  };
  remark("the GID table", history.gids_changed_ns());
  remark("the P_Key table", history.pkeys_changed_ns());
  return report;
}

}  // namespace beeline
