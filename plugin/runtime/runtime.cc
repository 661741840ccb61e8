// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>

#include "common/base/version.h"
#include "include/beeline/stats_page.h"
#include "plugin/device/nearest_groups.h"
#include "plugin/runtime/finding_log.h"
#include "plugin/runtime/host_checks.h"
#include "plugin/runtime/options.h"
#include "plugin/runtime/placement.h"
#include "plugin/runtime/settings.h"
#include "plugin/transfer/comm_gate.h"
#include "plugin/verbs/create.h"
#include "plugin/verbs/text.h"
#include "plugin/wire/message_version.h"

namespace beeline {
namespace {

constexpr unsigned long kGraph = kLogInit | kLogGraph;

std::string why_no_list(const Error& error) {
  if (error.sys_errno != ENOSYS) return describe(error);
  return "the kernel of this host has no RDMA support loaded (modprobe ib_uverbs, or the adapter's "
         "driver)";
}

std::string joined(const std::vector<std::string>& notes) {
  std::string all;
  for (const std::string& note : notes) all += "; " + note;
  return all;
}

Finding warning(std::string_view id, std::string fact) {
  return {.id = id, .severity = Severity::kWarning, .fact = std::move(fact)};
}

// Null until the first call.
constinit std::atomic<Runtime*> only{nullptr};

// Called by exit() and at the end of main(), but not if a signal or _exit() ends the process.
[[gnu::destructor]] void at_exit() {
  Runtime* const made = only.load(std::memory_order_acquire);
  if (made != nullptr) made->on_exit();
}

}  // namespace

Runtime& Runtime::instance() {
  Runtime* made = only.load(std::memory_order_acquire);
  if (made != nullptr) return *made;
  auto mine = std::unique_ptr<Runtime>(new Runtime);
  if (!only.compare_exchange_strong(made, mine.get())) return *made;  // another thread was first
  return *mine.release();
}

void Runtime::init(LogSink sink) {
  const std::lock_guard lock(mutex_);
  if (sink != nullptr || !ready_) set_log_sink(sink);
  if (ready_) return probe_gpus();
  ready_ = true;  // also after a failure, because a second attempt would not find more
  pid_ = ::getpid();
  try {
    init_host();
  } catch (const std::exception& error) {
    log_finding(warning("no-device", std::string("no device: ") + error.what()));
    net_devices_.reset();
    control_.reset();
    stats_.reset();
    table_.reset();
  }
}

void Runtime::on_exit() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && stats_ && is_ours()) stats_->remove_unless_failed();
}

bool Runtime::is_ours() const noexcept { return ::getpid() == pid_; }

void Runtime::init_host() {
  BL_INFO(kLogInit | kLogNet, "Beeline %s, protocol %s, statistics page version %d", kBuild,
          text(wire::kOurVersions).c_str(), BEELINE_STATS_VERSION);
  const Environ environ = Environ::of_process();
  LoadedConfig loaded = load_config(environ);
  log_findings(loaded.findings, kLogInit | kLogEnv);
  config_ = std::move(loaded.config);
  has_topology_file_ = environ.get("NCCL_TOPO_FILE").has_value();
  nccl_keeps_plugin_ = environ.get("NCCL_NET_PLUGIN_REF_COUNT") == "1";
  if (config_.ib_disable) {
    return log_finding(
        warning("turned-off", "no device is used: NCCL_IB_DISABLE or BEELINE_IB_DISABLE is set"));
  }
  log_findings(check_settings(config_, environ));
  if (!find_devices()) return;
  start_services();
  net_devices_ = std::make_unique<NetDevices>(
      group_nearest(table_->devices(), static_cast<std::size_t>(config_.rails)));
  if (config_.recovery && config_.standby) {
    standbys_ = std::make_unique<StandbyDevices>(table_->devices());
  }
  log_devices();
  check_host_of(environ);
  gpus_ = std::make_unique<gdr::GpuDirect>(gdr_options(config_), table_->devices().size());
  registration_ = {.caches = this,
                   .gpus = gpus_.get(),
                   .left_out = &left_out_rails_,
                   .has_recovery = config_.recovery};
  probe_gpus();
}

// False if there is no device. In that case there is one warning, because NCCL does not say that it
// falls back to another network.
bool Runtime::find_devices() {
  auto loaded = verbs::load(config_.ibverbs_lib);
  if (!loaded) {
    log_finding(warning("libibverbs-missing", "no device: " + loaded.error().text));
    return false;
  }
  verbs_ = std::move(*loaded);
  cm_library_.emplace(config_.rdmacm_lib);
  DeviceOptions options = device_options(config_);
  options.allow_iwarp = can_use_iwarp();
  auto table = DeviceTable::scan(verbs_->api, options);
  if (!table) {
    log_finding(warning("devices-not-listed",
                        "no device: " + why_no_list(table.error()) + joined(verbs_->notes)));
    return false;
  }
  table_ = std::move(*table);
  log_findings(table_->findings());
  if (table_->devices().empty()) {
    if (!table_->has_warned_of_no_device()) {
      log_finding(warning("no-device", "no device: " + verbs_->api.library +
                                           " lists none that can be used; is the adapter's driver "
                                           "loaded (ls /sys/class/infiniband), and is "
                                           "/dev/infiniband visible in this container?" +
                                           joined(verbs_->notes)));
    }
    return false;
  }
  for (const std::string& note : verbs_->notes) {
    log_finding(warning("libibverbs-not-as-asked", note));
  }
  return true;
}

// Loads librdmacm only on hosts with iWARP devices, because others do not need it.
bool Runtime::can_use_iwarp() {
  const auto list = verbs::DeviceList::get(verbs_->api);
  if (!list || std::ranges::none_of(list->devices(), [](const ibv_device* device) {
        return device->transport_type == IBV_TRANSPORT_IWARP;
      })) {
    return false;
  }
  const auto library = cm_library_->get();
  if (!library) {
    log_finding(
        warning("librdmacm-missing", "iWARP devices are not used: " + library.error().text));
  }
  return library.has_value();
}

// Logs slow links and a hidden PCI tree, and returns the processors near the devices in use. An
// exception here must not disable the devices.
std::string Runtime::check_placement() const noexcept {
  try {
    if (!machine_) return {};
    const auto nics = nodes_of(*machine_, table_->devices());
    log_findings(slow_links(*machine_, nics), kGraph);
    if (!has_topology_file_) {
      if (const auto hidden = hidden_tree(*machine_, nics)) log_finding(*hidden, kGraph);
    }
    return config_.affinity ? cpus_near(*machine_, nics) : std::string();
  } catch (const std::exception& error) {
    BL_INFO(kGraph, "this machine's topology is not used: %s", error.what());
    return {};
  }
}

void Runtime::read_topology() noexcept {
  try {
    std::vector<Finding> findings;
    machine_ = read_machine(config_.sysfs_root, findings);
    log_findings(findings, kGraph);
  } catch (const std::exception& error) {
    BL_INFO(kGraph, "this machine's topology is not used: %s", error.what());
  }
}

// The topology for decisions about distance, or null. With a topology file, NCCL may use pairs of
// GPU and NIC that are far apart here, so those pairs must be tested as well.
const topology::Graph* Runtime::known_topology() const {
  if (!machine_ || has_topology_file_ || has_hidden_tree(*machine_)) return nullptr;
  return &*machine_;
}

// An exception here must not disable transfers of host memory.
void Runtime::probe_gpus() noexcept {
  if (gpus_ == nullptr || !is_ours()) return;
  try {
    const auto cache_of = [this](const Device& device) { return cache_locked(device); };
    log_findings(gpus_->probe(table_->devices(), cache_of, known_topology()));
  } catch (const std::exception& error) {
    log_finding(warning("gpus-not-tried", std::string("GPU memory is not used: ") + error.what()));
  }
}

StatsSlot Runtime::acquire(SlotRole role, RailDevices devices) noexcept {
  if (!is_ours()) return {};
  const NetDevice* const device = net_devices_->with_rails(devices);
  return stats_->acquire(role, device != nullptr ? device->name : devices.front()->name);
}

void Runtime::set_identity(std::uint64_t identity) noexcept {
  if (is_ours()) stats_->set_identity(identity);
}

void Runtime::set_alive(std::int64_t now_ns) noexcept {
  if (is_ours()) stats_->set_alive(now_ns);
}

void Runtime::start_services() {
  stats_.reset(new StatsPage(StatsPage::open(stats_options(config_))));
  if (stats_->finding()) log_finding(*stats_->finding());
  ControlOptions control = control_options(config_);
  read_topology();
  control.near_cpus = check_placement();
  control.cm_library = &*cm_library_;
  control.slots = this;
  control_ = std::make_unique<ControlPlane>(std::move(control), *table_);
  register_membarrier();
}

// An exception here must not disable the devices.
void Runtime::check_host_of(const Environ& environ) const noexcept {
  try {
    log_findings(check_host(table_->devices(), environ, config_.sysfs_root));
  } catch (const std::exception& error) {
    BL_INFO(kLogInit | kLogNet, "this host is not checked: %s", error.what());
  }
}

void Runtime::log_devices() const {
  std::string text = "using";
  for (const Device& device : table_->devices()) {
    text += " [" + std::to_string(device.index) + "]" + device.ibdev + ":" +
            std::to_string(device.port) + "/" + to_string(device.transport) + " " +
            std::to_string(device.facts.speed_mbps / 1000) + "G mtu " +
            std::to_string(verbs::mtu_bytes(device.facts.active_mtu));
    if (device.numa_node >= 0) text += " numa " + std::to_string(device.numa_node);
  }
  text += "; " + verbs_->api.library;
  BL_INFO(kLogInit | kLogNet, "%s", text.c_str());
  log_merged_devices();
  log_unused_gid_index();
}

void Runtime::log_merged_devices() const {
  if (config_.rails == 1) return;
  for (std::size_t i = 0; i < net_devices_->count(); ++i) {
    const std::string text = describe(*net_devices_->find(static_cast<int>(i)));
    BL_INFO(kLogInit | kLogNet, "BEELINE_RAILS=%d: NCCL gets %s", config_.rails, text.c_str());
  }
}

void Runtime::log_unused_gid_index() const {
  const bool has_ib = std::ranges::any_of(table_->devices(), [](const Device& device) {
    return device.transport == Transport::kInfiniBand;
  });
  if (!has_ib || !config_.gid_index_is_for_roce) return;
  const std::string setting = "NCCL_IB_GID_INDEX=" + std::to_string(config_.gid_index);
  log_finding({.id = "gid-index-not-for-infiniband",
               .subject = "NCCL_IB_GID_INDEX",
               .fact = setting + " is not used on InfiniBand, as NCCL does not use it there; "
                                 "BEELINE_GID_INDEX would be"});
}

Result<const NetDevice*> Runtime::net_device(int index) const noexcept {
  const NetDevice* const device = has_devices() ? net_devices_->find(index) : nullptr;
  if (device != nullptr) return device;
  BL_WARN("device %d does not exist: there are %zu", index,
          has_devices() ? net_devices_->count() : 0);
  return fail(Errc::kInvalid, "find the device");
}

Result<MrCache*> Runtime::cache(const Device& device) {
  const std::lock_guard lock(mutex_);
  return cache_locked(device);
}

Result<MrCache*> Runtime::cache_locked(const Device& device) {
  const auto index = static_cast<std::size_t>(device.context->index());
  if (index >= caches_.size()) caches_.resize(index + 1);  // of a device that has returned
  auto& cache = caches_[index];
  if (cache == nullptr) {
    ibv_pd* const pd = BL_TRY(device.context->pd());
    cache = std::make_unique<MrCache>(device.api(), pd, device.caps.relaxed_ordering);
  }
  return cache.get();
}

}  // namespace beeline
