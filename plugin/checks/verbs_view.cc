// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/verbs_view.h"

#include <cerrno>
#include <cstdlib>

#include "plugin/checks/words.h"

#include "plugin/verbs/create.h"
#include "plugin/verbs/query.h"

namespace beeline::checks {
namespace {

constexpr int kSmallestMtuBytes = 128;  // IBV_MTU_256 is 1

VerbsDevice look_at(const verbs::Api& api, ibv_device* device) {
  auto context = verbs::open_device(api, device);
  if (!context) return {.error = describe(context.error())};
  VerbsDevice seen;
  const auto attr = verbs::query_device(api, context->get());
  if (!attr) return {.error = describe(attr.error())};
  for (int port = 1; port <= attr->phys_port_cnt; ++port) {
    const auto found = verbs::query_port(api, context->get(), static_cast<std::uint8_t>(port));
    if (found) seen.active_mtus[port] = kSmallestMtuBytes << found->attr.active_mtu;
  }
  return seen;
}

// The line without its first words. One blank follows each of them.
std::string rest_of(const std::string& line, int words) {
  std::size_t at = 0;
  for (int i = 0; i < words && at != std::string::npos; ++i) {
    at = line.find(' ', at);
    if (at != std::string::npos) ++at;
  }
  return at == std::string::npos ? std::string() : line.substr(at);
}

}  // namespace

VerbsView read_verbs(const std::string& library) {
  VerbsView view;
  const auto loaded = verbs::load(library);
  if (!loaded) {
    view.error = loaded.error().text;
    return view;
  }
  const auto list = verbs::DeviceList::get(loaded->api);
  if (!list) {
    if (list.error().sys_errno == ENOSYS) return view;  // the kernel has no RDMA support: no device
    view.error = describe(list.error());
    return view;
  }
  for (ibv_device* const device : list->devices()) {
    view.devices[loaded->api.get_device_name(device)] = look_at(loaded->api, device);
  }
  return view;
}

std::string to_text(const VerbsView& view) {
  if (!view.error.empty()) return "error " + view.error + "\n";
  std::string text = "list\n";
  for (const auto& [name, device] : view.devices) {
    text += "device " + name + (device.error.empty() ? "" : " " + device.error) + "\n";
    for (const auto& [port, mtu] : device.active_mtus) {
      text += "mtu " + name + " " + std::to_string(port) + " " + std::to_string(mtu) + "\n";
    }
  }
  return text;
}

std::optional<VerbsView> parse_verbs(const std::string& text) {
  if (text.empty()) return {};
  VerbsView view;
  for (const std::string& line : split(text, "\n")) {
    const std::vector<std::string> words = split(line);
    if (words.empty()) continue;
    if (words[0] == "error") {
      view.error = rest_of(line, 1);
    } else if (words[0] == "device" && words.size() > 1) {
      view.devices[words[1]].error = rest_of(line, 2);
    } else if (words[0] == "mtu" && words.size() == 4) {
      view.devices[words[1]].active_mtus[std::atoi(words[2].c_str())] = std::atoi(words[3].c_str());
    }
  }
  return view;
}

}  // namespace beeline::checks
