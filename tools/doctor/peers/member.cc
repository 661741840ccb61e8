// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/member.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/cli/host_name.h"
#include "tools/doctor/peers/plugin_warnings.h"
#include "tools/doctor/peers/protocol.h"
#include "tools/doctor/peers/rail_probe.h"
#include "tools/doctor/this_host.h"
#include "tools/perf/devices.h"
#include "tools/ranks/hex.h"

namespace beeline::doctor {
namespace {

// The handle, in hexadecimal digits, is the most of it.
constexpr std::size_t kLongestRequest = std::size_t{256} << 10;

Examined examine(const Request& request) {
  const Environ environ = Environ::of_process();
  const checks::Tree tree = this_tree(environ);
  CounterWatch watch(tree, request.seconds);
  const checks::Host host = checks::read_host(tree, environ, this_verbs(environ));
  return {.name = tools::name_of_this_host(),
          .card = card_of(host),
          .findings = checks::check_host(host, watch.finish())};
}

class Member {
 public:
  explicit Member(ranks::LineStream stream) : stream_(std::move(stream)) {
    stream_.allow(kLongestRequest);
  }
  ~Member() {
    probe_.reset();
    if (net_) (void)net_->calls.finalize(net_->ctx);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // False: this was the last request.
  bool answer(const std::string& line);
  Outcome<std::string> next() { return stream_.receive(); }

 private:
  Outcome<std::string> answer_to(const Request& request);
  Outcome<RailsOfHost> open_plugin();
  Outcome<std::string> listen(const Request& request);
  Outcome<const perf::RankMemory*> memory_for(const perf::Device& device, bool in_gpu_memory);
  ProbeResult run_probe(const Request& request);

  ranks::LineStream stream_;
  std::optional<perf::Net> net_;
  std::vector<perf::Device> devices_;
  std::map<perf::MemoryChoice, perf::RankMemory> memories_;
  std::unique_ptr<RailProbe> probe_;
};

// The cause in a warning of the plugin. Without the two ends, which the user knows here, and
// without the advice, since the finding has its own.
std::string cause_in(std::string_view warning) {
  for (const std::string_view before : {"it says: ", "cannot move data: "}) {
    const std::size_t at = warning.rfind(before);
    if (at != std::string_view::npos) warning.remove_prefix(at + before.size());
  }
  return std::string(warning.substr(0, warning.find(": it cannot be told")));
}

// The first warning of the plugin since the last call, or `text` if there was none. A warning says
// more than the result of a function.
std::string explained(const std::string& text) {
  const std::vector<std::string> warnings = take_warnings();
  return warnings.empty() ? text : cause_in(warnings.front());
}

bool Member::answer(const std::string& line) {
  const Outcome<Request> request = decode_request(line);
  if (!request) return static_cast<bool>(stream_.send(encode_refusal(request.error().text)));
  if (request->ask == Ask::kEnd) return false;
  if (request->ask == Ask::kStop) return true;  // it came when the probe had ended
  const Outcome<std::string> text = answer_to(*request);
  return static_cast<bool>(stream_.send(text ? *text : encode_refusal(text.error().text)));
}

Outcome<std::string> Member::answer_to(const Request& request) {
  switch (request.ask) {
    case Ask::kExamine: return encode(examine(request));
    case Ask::kOpen: return encode(BL_TRY(open_plugin()));
    case Ask::kListen: return encode_text(BL_TRY(listen(request)));
    case Ask::kProbe: return encode(run_probe(request));
    case Ask::kStop:
    case Ask::kEnd: break;
  }
  return fail("an unknown request");
}

// The plugin would go on over another rail, or wait for this one to come back, and that would hide
// the fault. The device gives up within about three seconds, unless the user has set a time.
void have_failures_shown() {
  ::setenv("BEELINE_RECOVERY", "0", 1);
  if (std::getenv("NCCL_IB_TIMEOUT") == nullptr) ::setenv("BEELINE_TIMEOUT", "14", 0);
}

Outcome<RailsOfHost> Member::open_plugin() {
  have_failures_shown();
  perf::Net net{BL_TRY(nccl::load_plugin("", 0))};
  const Outcome<bool> started = perf::init_plugin(net, keep_warning);
  if (!started) return fail(explained(started.error().text));
  net_ = std::move(net);
  Outcome<std::vector<perf::Device>> devices = perf::list_devices(*net_);
  if (!devices) return fail(explained(devices.error().text));
  devices_ = *std::move(devices);
  (void)take_warnings();
  RailsOfHost rails = {.plugin =
                           fmt::format("{} v{}, {}", net_->calls.name, net_->abi, net_->file)};
  for (const perf::Device& device : devices_) {
    rails.rails.push_back({.name = perf::without_prefix(device.name), .mbps = device.props.speed});
  }
  rails.has_gpu = static_cast<bool>(perf::RankGpu::open(0));
  return rails;
}

Outcome<const perf::RankMemory*> Member::memory_for(const perf::Device& device,
                                                    bool in_gpu_memory) {
  const bool has_dmabuf = (device.props.ptrSupport & NCCL_PTR_DMABUF) != 0;
  const perf::MemoryChoice choice = !in_gpu_memory ? perf::MemoryChoice::kHost
                                    : has_dmabuf   ? perf::MemoryChoice::kDmabuf
                                                   : perf::MemoryChoice::kPeermem;
  auto found = memories_.find(choice);
  if (found == memories_.end()) {
    found = memories_.emplace(choice, BL_TRY(perf::RankMemory::open(choice, 0))).first;
  }
  BL_TRY(found->second.check_support(*net_, device));
  return &found->second;
}

Outcome<std::string> Member::listen(const Request& request) {
  if (!net_ || request.rail >= devices_.size()) return fail("there is no such rail");
  (void)take_warnings();
  const perf::Device& device = devices_[request.rail];
  const perf::RankMemory* const memory = BL_TRY(memory_for(device, request.in_gpu_memory));
  probe_ =
      std::make_unique<RailProbe>(*net_, device, *memory, [this] { return stream_.is_readable(); });
  const Outcome<std::string> handle = probe_->listen();
  if (!handle) return fail(explained(handle.error().text));
  return ranks::hex_of(*handle);
}

ProbeResult Member::run_probe(const Request& request) {
  if (!probe_) return {.failure = "the rail was not listened on"};
  ProbeResult result = probe_->run(ranks::bytes_of(request.handle), request.is_first);
  probe_.reset();
  const std::string text = explained("");
  if (!result.failure.empty() && !result.is_wrong && !text.empty()) {
    result.failure = text;
  }
  return result;
}

}  // namespace

int serve(ranks::LineStream stream) {
  Member member(std::move(stream));
  for (;;) {
    const Outcome<std::string> line = member.next();
    if (!line) return 0;
    if (!member.answer(*line)) return 0;
  }
}

int serve_on_stdio() {
  // Only answers may go to the other end. Whatever else this process prints goes to stderr.
  UniqueFd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  UniqueFd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  return serve(ranks::LineStream(std::move(in), std::move(out)));
}

}  // namespace beeline::doctor
