// SPDX-License-Identifier: Apache-2.0
//
// The rules are those of NCCL 2.30 (ncclTopoComputePaths, ncclTopoGetLocalNet,
// ncclTopoGetLocalGpu), under the assumption that GPUDirect is possible everywhere.
#include "topology/nccl_choice.h"

#include <algorithm>
#include <map>

#include "topology/nccl_link.h"
#include "topology/nccl_paths.h"

namespace beeline::topology {
namespace {

// NCCL does not support more of either kind, and the time of this computation grows with the
// product of their numbers.
constexpr std::size_t kMostForPxn = 640;

using List = std::vector<std::size_t>;  // indices of GPUs or of nets

bool is_better(const NcclPath& a, const NcclPath& b) noexcept {
  return a.bandwidth != b.bandwidth ? a.bandwidth > b.bandwidth : a.type < b.type;
}
bool is_equal(const NcclPath& a, const NcclPath& b) noexcept {
  return a.bandwidth == b.bandwidth && a.type == b.type;
}

// All entries that are as good as the best.
template <class PathTo>
List best_of(std::size_t count, const PathTo& path_to) {
  List best;
  for (std::size_t i = 0; i < count; ++i) {
    if (!best.empty() && is_better(path_to(i), path_to(best.front()))) best.clear();
    if (best.empty() || is_equal(path_to(i), path_to(best.front()))) best.push_back(i);
  }
  return best;
}

// Neighboring GPUs take NICs that are far apart in the list: the bits of the index are reversed if
// the count is a power of two.
std::size_t mirrored(std::size_t value, std::size_t count) noexcept {
  if ((count & (count - 1)) != 0) return value;
  std::size_t mirror = 0;
  for (std::size_t bit = 1, other = count >> 1; bit < count; bit <<= 1, other >>= 1) {
    if ((value & bit) != 0) mirror |= other;
  }
  return mirror;
}

// One run of nccl_choices().
// Lifecycle: a local variable. Threads: one.
class Chooser {
 public:
  Chooser(const Graph& graph, std::span<const NodeIndex> nics)
      : graph_(graph), nets_(nccl_nets(graph, nics)), paths_(graph), local_gpus_(nets_.size()) {
    for (const NodeIndex gpu : graph.gpus()) {
      std::vector<NcclPath>& row = table_.emplace_back();
      row.reserve(nets_.size());
      for (const NcclNet& net : nets_) row.push_back(paths_.between(gpu, net));
    }
    if (nets_.empty()) return;
    for (std::size_t gpu = 0; gpu < table_.size(); ++gpu) local_nets_.push_back(best_nets(gpu));
    mark_c2c();
    for (std::size_t net = 0; net < nets_.size(); ++net) local_gpus_[net] = best_gpus(net);
    go_through_gpus();
  }

  std::vector<NcclChoice> run() const {
    std::vector<NcclChoice> choices;
    for (std::size_t gpu = 0; gpu < table_.size(); ++gpu) {
      NcclChoice& choice = choices.emplace_back();
      choice.gpu = graph_.gpus()[gpu];
      if (nets_.empty()) continue;
      const List used = used_nets(gpu);
      choice.nics = nics_of(used);
      choice.equals = nics_of(local_nets_[gpu]);
      const NcclPath& path = table_[gpu][used.front()];
      choice.path_type = path.type;
      choice.gigabytes_per_second = path.bandwidth;
      choice.gpu_direct = path.type <= NcclPathType::kPxn;
      if (path.type == NcclPathType::kPxn) choice.through = through_.at({gpu, used.front()});
    }
    return choices;
  }

 private:
  List best_nets(std::size_t gpu) const {
    return best_of(nets_.size(), [&](std::size_t net) { return table_[gpu][net]; });
  }
  List best_gpus(std::size_t net) const {
    return best_of(table_.size(), [&](std::size_t gpu) { return table_[gpu][net]; });
  }

  // CUDA's number of the GPU, or its position among the GPUs if that is unknown.
  std::size_t number_of(std::size_t gpu) const noexcept {
    const int number = graph_[graph_.gpus()[gpu]].gpu.number;
    return number < 0 ? gpu : static_cast<std::size_t>(number);
  }

  // The NICs that the channels of this GPU use, until they repeat.
  List used_nets(std::size_t gpu) const {
    const List& nets = local_nets_[gpu];
    const std::size_t sharers = local_gpus_[nets.front()].size();
    const std::size_t first = mirrored(number_of(gpu) % sharers, nets.size());
    List used;
    for (std::size_t i = 0; i < (nets.size() + sharers - 1) / sharers; ++i) {
      used.push_back(nets[(first + i) % nets.size()]);
    }
    return used;
  }

  std::vector<NodeIndex> nics_of(const List& nets) const {
    std::vector<NodeIndex> nics;
    for (const std::size_t net : nets) {
      if (std::ranges::find(nics, nets_[net].nic) == nics.end()) nics.push_back(nets_[net].nic);
    }
    return nics;
  }

  // A NIC that is reached over C2C and the processor is nearer than one that is reached over PCIe
  // and the processor.
  void mark_c2c() {
    for (std::size_t gpu = 0; gpu < table_.size(); ++gpu) {
      if (!paths_.has_c2c(graph_.gpus()[gpu])) continue;
      for (const std::size_t net : local_nets_[gpu]) {
        NcclPath& path = table_[gpu][net];
        if (path.type == NcclPathType::kPhb) path.type = NcclPathType::kP2c;
      }
      local_nets_[gpu] = best_nets(gpu);
    }
  }

  void go_through_gpus() {
    if (table_.size() > kMostForPxn || nets_.size() > kMostForPxn) return;
    const std::vector<std::vector<float>> nvlinks = nvlinks_between();
    if (nvlinks.empty()) return;
    for (std::size_t net = 0; net < nets_.size(); ++net) {
      const std::size_t near = gpu_of(net);
      if (near == table_.size() || table_[near][net].type > NcclPathType::kP2c) continue;
      for (std::size_t gpu = 0; gpu < table_.size(); ++gpu) {
        const float nvlink = nvlinks[near][gpu];
        NcclPath& path = table_[gpu][net];
        const bool is_gain =
            table_[near][net].bandwidth > path.bandwidth || path.type > NcclPathType::kPxn;
        if (gpu == near || nvlink <= 0 || !is_gain) continue;
        path = {.bandwidth = std::min(nvlink, table_[near][net].bandwidth),
                .type = NcclPathType::kPxn};
        through_[{gpu, net}] = graph_.gpus()[near];
        local_nets_[gpu] = best_nets(gpu);
      }
    }
  }

  // The GPU that a NIC belongs to: of the nearest ones the one that uses it in the lowest channel,
  // and of several in the same channel the first.
  std::size_t gpu_of(std::size_t net) const {
    std::size_t owner = table_.size();
    std::size_t lowest = nets_.size();
    for (const std::size_t gpu : local_gpus_[net]) {
      const List used = used_nets(gpu);
      const auto channel = static_cast<std::size_t>(std::ranges::find(used, net) - used.begin());
      if (channel >= std::min(lowest, used.size())) continue;
      lowest = channel;
      owner = gpu;
    }
    return owner;
  }

  // The NVLink bandwidth of each pair of GPUs, directly or through switches. Empty if there is no
  // NVLink.
  std::vector<std::vector<float>> nvlinks_between() const {
    const std::span<const NodeIndex> gpus = graph_.gpus();
    std::map<std::string, std::size_t> by_address;
    std::vector<float> to_switch(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (graph_[gpus[i]].pci) by_address[to_string(*graph_[gpus[i]].pci)] = i;
    }
    std::vector<std::vector<float>> links(gpus.size(), std::vector<float>(gpus.size()));
    bool has_any = false;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const GpuFacts& facts = graph_[gpus[i]].gpu;
      for (const GpuLink& link : facts.links) {
        if (link.kind != GpuLinkKind::kNvLink) continue;
        has_any = true;
        const auto target = by_address.find(link.target);
        float& sum = target == by_address.end() ? to_switch[i] : links[i][target->second];
        sum += nccl_bandwidth(link, facts.sm);
      }
    }
    if (!has_any) return {};
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      for (std::size_t b = 0; b < gpus.size(); ++b) {
        links[a][b] = std::max(links[a][b], std::min(to_switch[a], to_switch[b]));
      }
    }
    return links;
  }

  const Graph& graph_;
  std::vector<NcclNet> nets_;
  NcclPaths paths_;
  std::vector<std::vector<NcclPath>> table_;  // by GPU and net
  std::vector<List> local_nets_;              // by GPU: the best nets
  std::vector<List> local_gpus_;              // by net: the nearest GPUs, without PXN
  std::map<std::pair<std::size_t, std::size_t>, NodeIndex> through_;  // by GPU and net
};

}  // namespace

const char* to_string(NcclPathType path) noexcept {
  switch (path) {
    case NcclPathType::kPix: return "PIX";
    case NcclPathType::kPxb: return "PXB";
    case NcclPathType::kP2c: return "P2C";
    case NcclPathType::kPxn: return "PXN";
    case NcclPathType::kPhb: return "PHB";
    case NcclPathType::kSys: return "SYS";
  }
  return "?";
}

std::vector<NcclChoice> nccl_choices(const Graph& graph, const NcclOptions& options) {
  return Chooser(graph, options.nics.value_or(nics_not_down(graph))).run();
}

}  // namespace beeline::topology
