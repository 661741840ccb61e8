// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/event_names.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cctype>

#include "softnic/spec/names.h"

namespace softnic {
namespace {

struct EventName {
  const char* name;
  ibv_event_type type;
};

constexpr EventName kEventNames[] = {
    {"port_err", IBV_EVENT_PORT_ERR},
    {"port_active", IBV_EVENT_PORT_ACTIVE},
    {"lid_change", IBV_EVENT_LID_CHANGE},
    {"pkey_change", IBV_EVENT_PKEY_CHANGE},
    {"sm_change", IBV_EVENT_SM_CHANGE},
    {"gid_change", IBV_EVENT_GID_CHANGE},
    {"client_reregister", IBV_EVENT_CLIENT_REREGISTER},
    {"device_fatal", IBV_EVENT_DEVICE_FATAL},
    {"qp_fatal", IBV_EVENT_QP_FATAL},
    {"cq_err", IBV_EVENT_CQ_ERR},
};

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

beeline::Outcome<std::uint32_t> parse_event_name(const std::string& text) {
  std::string name = lower_case(text);
  if (name.starts_with("ibv_event_")) name.erase(0, 10);
  std::vector<std::string> known;
  for (const EventName& entry : kEventNames) {
    if (name == entry.name) return static_cast<std::uint32_t>(entry.type);
    known.emplace_back(entry.name);
  }
  const std::string meant = nearest_name(name, known);
  return beeline::fail(fmt::format("\"{}\" is not an event; {}", text,
                                   meant.empty() ? "the events are " + list_text(known)
                                                 : fmt::format("did you mean {}?", meant)));
}

std::string event_name(std::uint32_t type) {
  for (const EventName& entry : kEventNames)
    if (type == entry.type) return entry.name;
  return fmt::format("event {}", type);
}

bool is_device_event(std::uint32_t type) { return type == IBV_EVENT_DEVICE_FATAL; }

}  // namespace softnic
