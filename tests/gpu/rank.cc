// SPDX-License-Identifier: Apache-2.0
//
// See rank.h.
#include "tests/gpu/rank.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "tests/gpu/card.h"
#include "tests/gpu/content.h"
#include "tests/gpu/cuda_api.h"
#include "tests/gpu/nccl_api.h"
#include "tests/gpu/operation.h"

namespace beeline::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// What lives as long as the rank. Nothing is freed: the process ends with it.
class Rank {
 public:
  static Outcome<Rank> start(const Run& run, int rank, const Line& line);
  Outcome<Done> run(std::uint32_t index, int round);
  Outcome<Done> finish();

 private:
  Rank(const Run& run, int rank, const Line& line, Nccl nccl, Cuda cuda)
      : run_(&run), rank_(rank), line_(&line), nccl_(std::move(nccl)), cuda_(std::move(cuda)) {}

  void step(const std::string& what) const { line_->say(ReportKind::kStep, what); }
  Outcome<Done> allocate();
  Outcome<Done> join();
  Outcome<Layout> prepare(const Case& one, const Place& place, bool is_in_place, Work& work);
  Outcome<Done> wait() const;
  void report(std::uint32_t index, int round, double seconds, const Verdict& verdict) const;

  const Run* run_;
  int rank_;
  const Line* line_;
  Nccl nccl_;
  Cuda cuda_;
  NcclComm comm_ = nullptr;
  StreamHandle stream_ = nullptr;
  DevicePointer from_ = 0;
  DevicePointer to_ = 0;
  std::vector<unsigned char> staging_;
};

Outcome<Rank> Rank::start(const Run& run, int rank, const Line& line) {
  line.say(ReportKind::kStep, "opening CUDA");
  Cuda cuda = BL_TRY(Cuda::open());
  line.say(ReportKind::kStep, "loading NCCL");
  Nccl nccl = BL_TRY(Nccl::open());
  Rank made(run, rank, line, std::move(nccl), std::move(cuda));
  BL_TRY(made.allocate());
  BL_TRY(made.join());
  return made;
}

Outcome<Done> Rank::allocate() {
  step("taking GPU memory");
  std::size_t most = 0;
  for (const Case& one : run_->cases) {
    most = std::max({most, one.input_bytes(run_->ranks), one.output_bytes(run_->ranks)});
  }
  staging_.resize(kGuardBytes + most + kGuardBytes);
  from_ = BL_TRY(cuda_.allocate(staging_.size()));
  to_ = BL_TRY(cuda_.allocate(staging_.size()));
  stream_ = BL_TRY(cuda_.make_stream());
  return Done{};
}

Outcome<Done> Rank::join() {
  Report id{.kind = ReportKind::kUniqueId};
  if (rank_ == 0) {
    step("in ncclGetUniqueId");
    BL_TRY(nccl_.check("ncclGetUniqueId", nccl_.call().get_unique_id(&id.unique_id)));
    line_->say(id);
  } else {
    step("waiting for rank 0's unique id");
    const std::optional<Report> heard = line_->hear();
    if (!heard) return fail("rank 0 gave no unique id");
    id = *heard;
  }
  step("in ncclCommInitRank");
  return nccl_.check("ncclCommInitRank",
                     nccl_.call().comm_init_rank(&comm_, run_->ranks, id.unique_id, rank_));
}

Outcome<Done> Rank::run(std::uint32_t index, int round) {
  const Case& one = run_->cases[index];
  const Place place{rank_, run_->ranks, round};
  const bool is_in_place = round % 2 == 1 && one.works_in_place();
  step(fmt::format("in the {}, round {}{}", describe(one), round, is_in_place ? ", in place" : ""));
  Work work{comm_, rank_, run_->ranks, 0, 0, stream_};
  const Layout layout = BL_TRY(prepare(one, place, is_in_place, work));
  const Clock::time_point start = Clock::now();
  BL_TRY(queue(nccl_, one, work));
  BL_TRY(wait());
  const std::chrono::duration<double> took = Clock::now() - start;
  BL_TRY(cuda_.download(staging_.data(), to_, layout.bytes()));
  report(index, round, took.count(), check(one, place, layout, staging_.data()));
  return Done{};
}

// Guards everywhere, the input where it belongs. Returns where the output will lie in to_.
Outcome<Layout> Rank::prepare(const Case& one, const Place& place, bool is_in_place, Work& work) {
  const Layout target = is_in_place ? in_place(one, place) : apart_output(one, place);
  const Layout source = is_in_place ? target : apart_input(one, place);
  const DevicePointer input = is_in_place ? to_ : from_;
  BL_TRY(cuda_.fill(input, kGuardByte, source.bytes()));
  BL_TRY(cuda_.fill(to_, kGuardByte, target.bytes()));
  fill(one, place, staging_.data());
  BL_TRY(cuda_.upload(input + source.input, staging_.data(), one.input_bytes(place.ranks)));
  work.input = input + source.input;
  work.output = to_ + target.output;
  return target;
}

void Rank::report(std::uint32_t index, int round, double seconds, const Verdict& verdict) const {
  Report report{.kind = ReportKind::kResult,
                .index = index,
                .round = static_cast<std::uint32_t>(round),
                .wrong = verdict.wrong,
                .seconds = seconds};
  std::copy_n(verdict.first.begin(), std::min(verdict.first.size(), report.text.size() - 1),
              report.text.begin());
  line_->say(report);
}

// A network's error reaches the application only by this question: the kernel itself would wait
// for ever.
Outcome<Done> Rank::wait() const {
  while (!BL_TRY(cuda_.is_idle(stream_))) {
    int result = kNcclSuccess;
    BL_TRY(nccl_.check("ncclCommGetAsyncError", nccl_.call().comm_get_async_error(comm_, &result),
                       comm_));
    if (result != kNcclInProgress) BL_TRY(nccl_.check("the running operation", result, comm_));
    sched_yield();
  }
  return Done{};
}

Outcome<Done> Rank::finish() {
  step("in ncclCommDestroy");
  return nccl_.check("ncclCommDestroy", nccl_.call().comm_destroy(comm_));
}

Outcome<Done> live(const Run& run, int rank, const Line& line) {
  enter_environment(run.settings, rank);
  Rank self = BL_TRY(Rank::start(run, rank, line));
  for (std::uint32_t index = 0; index < run.cases.size(); ++index) {
    for (int round = 0; round < run.rounds; ++round) BL_TRY(self.run(index, round));
  }
  return self.finish();
}

// Both are looked for, whatever becomes of the first: one answer tells all that is missing.
Outcome<std::string> find_out() {
  const Outcome<Cuda> cuda = Cuda::open();
  const Outcome<Nccl> nccl = Nccl::open();
  if (!cuda && !nccl) return fail(fmt::format("{}\n  {}", cuda.error(), nccl.error()));
  if (!cuda) return fail(cuda.error());
  if (!nccl) return fail(nccl.error());
  return fmt::format("GPU      {}\n{}\nNCCL     {}", BL_TRY(cuda->describe()), card(*cuda),
                     BL_TRY(nccl->describe()));
}

}  // namespace

void run_rank(const Run& run, int rank, const Line& line) {
  const Outcome<Done> lived = live(run, rank, line);
  if (lived) {
    line.say(ReportKind::kDone, "");
  } else {
    line.say(ReportKind::kFailed, lived.error());
  }
}

void probe(const Line& line) {
  const Outcome<std::string> found = find_out();
  if (found) {
    line.say(ReportKind::kFacts, *found);
  } else {
    line.say(ReportKind::kUnavailable, found.error());
  }
}

}  // namespace beeline::gpu
