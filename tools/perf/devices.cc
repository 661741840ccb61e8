// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/cli/unknown_word.h"
#include "tools/perf/net_failure.h"
#include "tools/perf/plugin_log.h"

namespace beeline::perf {
namespace {

constexpr std::string_view kPrefix = "beeline_";
constexpr int kMostRails = NCCL_NET_MAX_DEVS_PER_NIC_V12;

std::string known_devices(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", device.index, device.name);
  }
  return text;
}

// "mlx5_0:2", as Linux and the log name it, for the second port of mlx5_0, whose device is
// "mlx5_0_p2".
std::string port_of(const Device& device) {
  if (device.props.vProps.ndevs > 1) return "";
  std::string name = without_prefix(device.name);
  const std::string suffix = fmt::format("_p{}", device.props.port);
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return fmt::format("{}:{}", name, device.props.port);
}

void mark_merged(std::vector<Device>& devices) {
  for (const Device& device : devices) {
    const ncclNetVDeviceProps_v12_t& parts = device.props.vProps;
    for (int i = 0; parts.ndevs > 1 && i < std::min(parts.ndevs, kMostRails); ++i) {
      const auto part = static_cast<size_t>(parts.devs[i]);
      if (part < devices.size()) devices[part].is_merged = true;
    }
  }
}

}  // namespace

std::string pointer_kinds(int support) {
  std::string text;
  for (const auto& [bit, name] :
       {std::pair{NCCL_PTR_HOST, "host"}, {NCCL_PTR_CUDA, "cuda"}, {NCCL_PTR_DMABUF, "dmabuf"}}) {
    if ((support & bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : "+", name);
  }
  return text;
}

Outcome<bool> init_plugin(Net& net, ncclDebugLogger_t log) {
  static ncclNetCommConfig_v12_t config{NCCL_NET_TRAFFIC_CLASS_UNDEF};
  constexpr std::uint64_t kCommId = 0xBEE;
  const ncclResult_t result = net.calls.init(&net.ctx, kCommId, &config, log, nullptr);
  if (result != ncclSuccess) return fail(std::string(NetFailure{"init", result}));
  return true;
}

Outcome<std::vector<Device>> list_devices(const Net& net) {
  int count = 0;
  const ncclResult_t counted = net.calls.devices(&count);
  if (counted != ncclSuccess) return fail(std::string(NetFailure{"devices", counted}));
  if (count <= 0) {
    return fail(fmt::format(
        "the plugin {} found no devices{}. Without RDMA hardware: softnic run -- beeline perf ... "
        "(package beeline-softnic)",
        net.calls.name,
        has_plugin_warned() ? "; its warning above says why" : "; --log INFO may show why"));
  }
  std::vector<Device> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    Device& device = devices[static_cast<size_t>(i)];
    device.index = i;
    const ncclResult_t result = net.calls.getProperties(i, &device.props);
    if (result != ncclSuccess) return fail(std::string(NetFailure{"getProperties", result}));
    device.name = device.props.name == nullptr ? "" : device.props.name;
  }
  mark_merged(devices);
  return devices;
}

Outcome<std::vector<Device>> merge_devices(const Net& net, std::vector<Device> devices, int rails) {
  if (rails < 2) return devices;
  if (net.calls.makeVDevice == nullptr) {
    return fail(
        fmt::format("--rails {}: the table v{} of this plugin cannot merge devices (makeVDevice, "
                    "v9 and later); "
                    "Beeline merges them itself with --env BEELINE_RAILS={}",
                    rails, net.abi, rails));
  }
  const int most = net.abi >= 12 ? kMostRails : int{NCCL_NET_MAX_DEVS_PER_NIC_V9};
  if (rails > most) {
    return fail(fmt::format("--rails {}: v{} merges at most {} devices", rails, net.abi, most));
  }
  const int count = static_cast<int>(devices.size());
  if (rails > count) {
    return fail(fmt::format(
        "--rails {}: the plugin {} has fewer devices: {}; use --rails {} or less, or let the "
        "plugin use more NICs (NCCL_IB_HCA)",
        rails, net.calls.name, known_devices(devices), count));
  }
  for (int first = 0; first + rails <= count; first += rails) {
    ncclNetVDeviceProps_v12_t parts{.ndevs = rails, .devs = {}};
    for (int i = 0; i < rails; ++i) parts.devs[i] = first + i;
    int made = 0;
    const ncclResult_t result = net.calls.makeVDevice(&made, &parts);
    if (result != ncclSuccess) return fail(std::string(NetFailure{"makeVDevice", result}));
  }
  return list_devices(net);
}

std::string without_prefix(const std::string& name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

Outcome<int> find_device(const std::vector<Device>& devices, const std::string& wanted) {
  std::vector<std::string> known;
  for (const Device& device : devices) {
    const std::string name = without_prefix(device.name);
    const bool is_name = device.name == wanted || name == wanted || port_of(device) == wanted;
    if (is_name || fmt::to_string(device.index) == wanted) return device.index;
    known.push_back(name);
  }
  const std::string meant = tools::did_you_mean(wanted, {known.begin(), known.end()});
  return fail(fmt::format("--dev: there is no device {}{} {}", wanted,
                          meant.empty() ? "; there are" : meant + " There are",
                          known_devices(devices)));
}

Outcome<int> choose_device(const DeviceSpec& spec, const std::vector<Device>& devices, int comm,
                           int rank) {
  if (spec.empty()) {
    std::vector<int> whole;
    for (const Device& device : devices) {
      if (!device.is_merged) whole.push_back(device.index);
    }
    return whole[static_cast<size_t>(comm) % whole.size()];
  }
  const auto& group = spec[static_cast<size_t>(comm) % spec.size()];
  return find_device(devices, group[static_cast<size_t>(rank) % group.size()]);
}

std::string describe_devices(const Net& net, const std::vector<Device>& devices) {
  std::string text = fmt::format("# {} (v{}), {}\n", net.calls.name, net.abi, net.file);
  for (const Device& device : devices) {
    const ncclNetProperties_v12_t& props = device.props;
    text += fmt::format("{:3} {}\n", device.index, device.name);
    text += fmt::format("    speed {} Mbit/s, latency {:g} us, guid 0x{:x} port {}\n", props.speed,
                        static_cast<double>(props.latency), props.guid, props.port);
    text += fmt::format("    pci {}\n", props.pciPath == nullptr ? "unknown" : props.pciPath);
    text +=
        fmt::format("    memory {}, registrations {}, flush {}\n", pointer_kinds(props.ptrSupport),
                    props.regIsGlobal != 0 ? "global" : "per comm",
                    props.forceFlush != 0 ? "always" : "as NCCL decides");
    text += fmt::format("    comms {}, parts of a receive {}, largest message {}\n", props.maxComms,
                        props.maxRecvs, props.maxP2pBytes);
    if (props.vProps.ndevs > 1) {
      text += "    made of";
      for (int i = 0; i < props.vProps.ndevs && i < NCCL_NET_MAX_DEVS_PER_NIC_V12; ++i) {
        text += fmt::format(" {}", props.vProps.devs[i]);
      }
      text += '\n';
    }
    if (props.railId != NCCL_NET_ID_UNDEF || props.planeId != NCCL_NET_ID_UNDEF) {
      text += fmt::format("    rail {}, plane {}\n", props.railId, props.planeId);
    }
  }
  return text;
}

}  // namespace beeline::perf
