// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/rank.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "tools/gpu_check/card.h"
#include "tools/gpu_check/content.h"
#include "tools/gpu_check/cuda_api.h"
#include "tools/gpu_check/nccl_api.h"
#include "tools/gpu_check/operation.h"

namespace beeline::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// The objects of a rank. Nothing is freed, since the process ends with it.
class Rank {
 public:
  static Outcome<Rank> start(const Run& run, int rank, const ReportSocket& socket);
  Outcome<void> run(std::uint32_t index, int round);
  Outcome<void> finish();

 private:
  Rank(const Run& run, int rank, const ReportSocket& socket, Nccl nccl, Cuda cuda)
      : run_(&run), rank_(rank), socket_(&socket), nccl_(std::move(nccl)), cuda_(std::move(cuda)) {}

  void step(const std::string& what) const { socket_->send(ReportKind::kStep, what); }
  Outcome<void> allocate();
  Outcome<void> join();
  Outcome<Layout> prepare(const Case& one, const Place& place, bool is_in_place, Work& work);
  Outcome<void> wait() const;
  void report(std::uint32_t index, int round, double seconds, const Verdict& verdict) const;

  const Run* run_;
  int rank_;
  const ReportSocket* socket_;
  Nccl nccl_;
  Cuda cuda_;
  NcclComm comm_ = nullptr;
  StreamHandle stream_ = nullptr;
  DevicePointer from_ = 0;
  DevicePointer to_ = 0;
  std::vector<unsigned char> staging_;
};

Outcome<Rank> Rank::start(const Run& run, int rank, const ReportSocket& socket) {
  socket.send(ReportKind::kStep, "opening CUDA");
  Cuda cuda = BL_TRY(Cuda::open());
  socket.send(ReportKind::kStep, "loading NCCL");
  Nccl nccl = BL_TRY(Nccl::open());
  Rank made(run, rank, socket, std::move(nccl), std::move(cuda));
  BL_TRY(made.allocate());
  BL_TRY(made.join());
  return made;
}

Outcome<void> Rank::allocate() {
  step("taking GPU memory");
  std::size_t most = 0;
  for (const Case& one : run_->cases) {
    most = std::max({most, one.input_bytes(run_->ranks), one.output_bytes(run_->ranks)});
  }
  staging_.resize(kGuardBytes + most + kGuardBytes);
  from_ = BL_TRY(cuda_.allocate(staging_.size()));
  to_ = BL_TRY(cuda_.allocate(staging_.size()));
  stream_ = BL_TRY(cuda_.make_stream());
  return {};
}

Outcome<void> Rank::join() {
  Report id{.kind = ReportKind::kUniqueId};
  if (rank_ == 0) {
    step("in ncclGetUniqueId");
    BL_TRY(nccl_.check("ncclGetUniqueId", nccl_.call().get_unique_id(&id.unique_id)));
    socket_->send(id);
  } else {
    step("waiting for rank 0's unique id");
    const std::optional<Report> heard = socket_->receive();
    if (!heard) return fail("rank 0 gave no unique id");
    id = *heard;
  }
  step("in ncclCommInitRank");
  return nccl_.check("ncclCommInitRank",
                     nccl_.call().comm_init_rank(&comm_, run_->ranks, id.unique_id, rank_));
}

Outcome<void> Rank::run(std::uint32_t index, int round) {
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
  return {};
}

// Fills the buffers with guard bytes and writes the input. Returns the layout of the output in to_.
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
  socket_->send(report);
}

// Network errors are reported only by ncclCommGetAsyncError; the kernel would wait for ever.
Outcome<void> Rank::wait() const {
  while (!BL_TRY(cuda_.is_idle(stream_))) {
    int result = kNcclSuccess;
    BL_TRY(nccl_.check("ncclCommGetAsyncError", nccl_.call().comm_get_async_error(comm_, &result),
                       comm_));
    if (result != kNcclInProgress) BL_TRY(nccl_.check("the running operation", result, comm_));
    sched_yield();
  }
  return {};
}

Outcome<void> Rank::finish() {
  step("in ncclCommDestroy");
  return nccl_.check("ncclCommDestroy", nccl_.call().comm_destroy(comm_));
}

Outcome<void> live(const Run& run, int rank, const ReportSocket& socket) {
  enter_environment(run.settings, rank);
  Rank self = BL_TRY(Rank::start(run, rank, socket));
  for (std::uint32_t index = 0; index < run.cases.size(); ++index) {
    for (int round = 0; round < run.rounds; ++round) BL_TRY(self.run(index, round));
  }
  return self.finish();
}

// Tries both libraries even if the first fails, so that one error names everything that is missing.
Outcome<std::string> find_out() {
  const Outcome<Cuda> cuda = Cuda::open();
  const Outcome<Nccl> nccl = Nccl::open();
  if (!cuda && !nccl) return fail(fmt::format("{}\n  {}", cuda.error().text, nccl.error().text));
  if (!cuda) return fail(cuda.error());
  if (!nccl) return fail(nccl.error());
  return fmt::format("GPU      {}\n{}\nNCCL     {}", BL_TRY(cuda->describe()), card(*cuda),
                     BL_TRY(nccl->describe()));
}

}  // namespace

void run_rank(const Run& run, int rank, const ReportSocket& socket) {
  const Outcome<void> lived = live(run, rank, socket);
  if (lived) {
    socket.send(ReportKind::kDone, "");
  } else {
    socket.send(ReportKind::kFailed, lived.error().text);
  }
}

void probe(const ReportSocket& socket) {
  const Outcome<std::string> found = find_out();
  if (found) {
    socket.send(ReportKind::kFacts, *found);
  } else {
    socket.send(ReportKind::kUnavailable, found.error().text);
  }
}

}  // namespace beeline::gpu
