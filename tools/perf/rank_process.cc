// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rank_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "tools/cli/host_name.h"
#include "tools/perf/json.h"
#include "tools/perf/pin.h"
#include "tools/perf/plugin_log.h"

namespace beeline::perf {
namespace {

// The variables that select a softnic host. Each host has its own sysfs tree.
void choose_host(const std::string& host) {
  ::setenv("SOFTNIC_HOST", host.c_str(), 1);
  const char* const root = std::getenv("BEELINE_SYSFS_ROOT");
  if (root == nullptr) return;
  const std::filesystem::path mine = std::filesystem::path(root).parent_path() / host;
  std::error_code error;
  if (std::filesystem::is_directory(mine, error)) ::setenv("BEELINE_SYSFS_ROOT", mine.c_str(), 1);
}

void set_environment(const Options& options, int rank) {
  // As torchrun does: the plugin shows them in the statistics page.
  ::setenv("RANK", std::to_string(rank).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(options.ranks).c_str(), 1);
  if (!options.hosts.empty()) {
    choose_host(options.hosts[static_cast<size_t>(rank) % options.hosts.size()]);
  }
  for (const RankVariable& variable : options.variables) {
    if (variable.rank != RankVariable::kAllRanks && variable.rank != rank) continue;
    ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
  }
}

// A plugin call of the main thread may hang, so the phase is reported before it.
void report_phase(Team& team, const char* phase) {
  team.send(Kind::kStatus, encode(Status{.phase = phase}));
}

// Checks --dev and --memory for all comms at the start, rather than when a comm uses them. Returns
// whether any received data will be flushed.
Outcome<bool> check_devices(const Options& options, const RankMemory& memory, const Net& net,
                            const std::vector<Device>& devices, int rank) {
  bool flushes = false;
  for (int c = 0; c < options.comms; ++c) {
    const int device = BL_TRY(choose_device(options.devices, devices, c, rank));
    const Device& chosen = devices[static_cast<size_t>(device)];
    BL_TRY(memory.check_support(net, chosen));
    flushes = flushes || memory.flushes(options.flush, chosen);
  }
  return flushes;
}

void describe_memory(const RankMemory& memory, RankFacts& facts) {
  facts.memory = to_string(memory.kind());
  if (memory.gpu() == nullptr) return;
  const gpu::Gpu& gpu = memory.gpu()->about();
  facts.gpu = GpuFacts{.ordinal = gpu.ordinal,
                       .name = gpu.name,
                       .pci = gpu.pci,
                       .compute = fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)};
}

RankFacts describe_rank(const Net& net, const std::vector<Device>& devices, bool as_json) {
  RankFacts facts;
  facts.name = net.calls.name;
  facts.abi = net.abi;
  facts.file = net.file;
  facts.pid = ::getpid();
  facts.host = tools::name_of_this_host();
  for (const Device& device : devices) facts.devices.push_back(device.name);
  facts.text = as_json ? to_json(net, devices) : describe_devices(net, devices);
  return facts;
}

template <class T>
Result<T, Ended> or_end(int code, Outcome<T> outcome) {
  if (outcome) return *std::move(outcome);
  return fail(Ended{code, outcome.error().text});
}

Result<bool, Ended> live(const Options& options, const Pattern& pattern, Team& team) {
  if (options.pin) BL_TRY(or_end(tools::kUsage, pin_rank(team.rank())));
  report_phase(team, "opening its memory");
  const RankMemory memory =
      BL_TRY(or_end(tools::kUsage, RankMemory::open(options.memory, team.rank())));
  report_phase(team, "loading the plugin");
  Net net{BL_TRY(or_end(tools::kUsage, nccl::load_plugin(options.plugin, options.abi)))};
  report_phase(team, "in the plugin's init");
  BL_TRY(or_end(tools::kFailed, init_plugin(net, plugin_log)));
  report_phase(team, "in the plugin's devices");
  std::vector<Device> devices = BL_TRY(or_end(tools::kUsage, list_devices(net)));
  devices = BL_TRY(or_end(tools::kUsage, merge_devices(net, std::move(devices), options.rails)));
  RankFacts facts = describe_rank(net, devices, options.list && !options.json.empty());
  if (!options.list) {
    facts.flush =
        BL_TRY(or_end(tools::kUsage, check_devices(options, memory, net, devices, team.rank())));
    describe_memory(memory, facts);
  }
  team.send(Kind::kPlugin, encode(facts));
  if (!options.list) {
    std::optional<Rank> rank;
    try {
      rank.emplace(options, team, memory, net, std::move(devices));
    } catch (const std::system_error& error) {
      return fail(Ended{
          tools::kFailed,
          fmt::format(
              "cannot start the service and progress threads: {}; raise the limit on processes "
              "(ulimit -u)",
              error.what())});
    }
    const Outcome<bool> ran = pattern.run(*rank);
    if (!ran) {
      return fail(Ended{tools::kFailed, fmt::format("{} ({})", ran.error().text, rank->phase())});
    }
  }
  report_phase(team, "in the plugin's finalize");
  const ncclResult_t result = net.calls.finalize(net.ctx);
  if (result == ncclSuccess) return true;
  return fail(Ended{tools::kFailed, NetFailure{"finalize", result}});
}

Result<bool, Ended> live_or_say(const Options& options, const Pattern& pattern, Team& team) {
  try {
    return live(options, pattern, team);
  } catch (const std::exception& error) {
    return fail(Ended{tools::kFailed, tools::describe(error)});
  }
}

}  // namespace

int run_rank(const Options& options, const Pattern& pattern, Team team) {
  set_environment(options, team.rank());
  set_plugin_log(team.rank(), options.log_level.value_or(level_of_environment()));
  const Result<bool, Ended> outcome = live_or_say(options, pattern, team);
  if (outcome) {
    team.send(Kind::kDone, {});
    return 0;
  }
  const Ended& ended = outcome.error();
  // A rank that was started by hand also prints the reason itself.
  if (options.rank > 0) tools::print_error(fmt::format("rank {}: {}", options.rank, ended.why));
  team.send(Kind::kFailed, encode(ended));
  // With --hold, the other ranks are to see this rank's failure through the plugin.
  if (options.hold_seconds > 0) team.wait_for_end();
  return ended.code;
}

}  // namespace beeline::perf
