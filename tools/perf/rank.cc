// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/rank.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tools/cli/exit_status.h"
#include "tools/perf/json.h"

namespace beeline::perf {
namespace {

constexpr int kStatusEveryMs = 250;
constexpr int kWrongShown = 5;

}  // namespace

Outcome<bool> Rank::on_service(Job job) {
  service_.start(on_gpu(std::move(job)));
  return await(service_);
}

Outcome<bool> Rank::on_progress(Job job) {
  progress_.start(on_gpu(std::move(job)));
  return await(progress_);
}

Outcome<bool> Rank::on_both(Job service, Job progress) {
  service_.start(on_gpu(std::move(service)));
  progress_.start(on_gpu(std::move(progress)));
  Outcome<bool> moved = await(progress_);
  Outcome<bool> served = await(service_);
  return moved ? std::move(served) : std::move(moved);
}

// As in NCCL, the rank's GPU is current in the threads that call the plugin.
Job Rank::on_gpu(Job job) const {
  const RankGpu* const gpu = memory_.gpu();
  if (gpu == nullptr) return job;
  return [gpu, job = std::move(job)]() -> Outcome<bool> {
    const gpu::ContextScope current = BL_TRY(gpu->enter());
    return job();
  };
}

Outcome<bool> Rank::await(Worker& worker) {
  for (;;) {
    if (auto outcome = worker.wait(kStatusEveryMs)) return std::move(*outcome);
    if (!tell_status()) end_without_coordinator();
  }
}

// The job may wait for ever, for a rank that has ended. If the coordinator started this process, it
// also ends it.
void Rank::end_without_coordinator() const {
  if (options_.rank <= 0) return;
  tools::print_error(fmt::format("rank {}: {} ({})", id(), Team::kNoCoordinator, phase_));
  std::_Exit(tools::kFailed);
}

void Rank::set_phase(std::string phase) {
  phase_ = std::move(phase);
  tell_status();
}

bool Rank::tell_status() {
  std::uint64_t done = 0;
  for (const End* end : watched_) done += end->completed();
  return team_.send(Kind::kStatus,
                    encode(Status{.done = done, .phase = phase_, .waiting = waiting_for()}));
}

void Rank::note(std::string text) {
  const std::lock_guard lock(note_mutex_);
  note_ = std::move(text);
}

std::string Rank::waiting_for() {
  std::string text;
  {
    const std::lock_guard lock(note_mutex_);
    text = note_;
  }
  for (CallWatch* watch : {&net_.watches->service, &net_.watches->progress}) {
    const char* const call = watch->stuck_in();
    if (call != nullptr) text += fmt::format("\n    the plugin does not return from {}", call);
  }
  for (const End* end : watched_) {
    const std::uint64_t in_flight = end->posted() - end->completed();
    if (in_flight == 0 && end->refused() == 0) continue;
    text += fmt::format(
        "\n    {}: {} requests in flight, {} done; the plugin answered \"call again\" {} times",
        end->label(), in_flight, end->completed(), end->refused());
  }
  return text;
}

void Rank::report_row(const Row& row) { team_.send(Kind::kRow, encode(row)); }

void Rank::report_wrong(const std::string& detail) {
  if (++wrong_shown_ > kWrongShown) return;
  std::fprintf(stderr, "rank %d: wrong data: %s%s\n", id(), detail.c_str(),
               wrong_shown_ == kWrongShown ? " (further ones are not shown)" : "");
}

}  // namespace beeline::perf
