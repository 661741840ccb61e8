// SPDX-License-Identifier: Apache-2.0
//
// All times of recovery, each with the reason for its value. They are in the order in which a
// failure meets them: it is noticed, the path is fenced, resolved and made anew, or the comm ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace beeline::times {

inline constexpr std::int64_t kNever = INT64_MAX;
inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr std::int64_t kNsPerSec = 1'000 * kNsPerMs;

// The delays of a message or an attempt that is repeated. After the first one, each is twice the
// one before it, but `least_later_ns` at least and `most_ns` at most.
struct Delays {
  std::int64_t first_ns = 0;
  std::int64_t least_later_ns = 0;
  std::int64_t most_ns = 0;

  constexpr std::int64_t after(std::int64_t delay_ns) const noexcept {
    return std::clamp(2 * delay_ns, least_later_ns, most_ns);
  }
};
constexpr bool are_ordered(const Delays& delays) noexcept {
  return delays.first_ns <= delays.most_ns && 0 < delays.least_later_ns &&
         delays.least_later_ns <= delays.most_ns;
}

// --- A path is silent (silence_watch.h) ---

// A waiting thread looks this often, which is a fraction of the shortest limit, since each look
// costs some function calls for each path.
inline constexpr std::int64_t kSilenceLookEveryNs = 20 * kNsPerMs;
// No more than this counts of the time between two looks, because a thread that was stopped has not
// waited all that time, while a thread on a busy processor does look at least this often.
inline constexpr std::int64_t kSilenceMostCountedNs = 100 * kNsPerMs;
// A path that has answered before is silent after this time at the earliest, which is far longer
// than an acknowledgment takes and shorter than the 0.5 s in which a device gives up by itself.
inline constexpr std::int64_t kSilenceLeastLimitNs = 300 * kNsPerMs;
// A path that has never answered gets this time, because its speed is not known yet.
inline constexpr std::int64_t kSilenceFirstLimitNs = 2 * kNsPerSec;
// False alarms double the limit up to this one, so that a silent path is still left while the
// application waits for seconds and not for minutes.
inline constexpr std::int64_t kSilenceMostLimitNs = 8 * kNsPerSec;
// The limit is at least so many times as long as the work under way should take by the measured
// rate, because other traffic may take most of the link for a while.
inline constexpr std::int64_t kSilenceExpectedTimes = 16;
// If nothing has completed on any path for this time, all paths get a write of 0 bytes, because a
// receiver whose grants are lost has nothing else that could show which path is silent.
inline constexpr std::int64_t kSilenceAskAfterNs = 200 * kNsPerMs;
// The limit is halved after this time without a false alarm, so that one slow minute of the network
// does not make every later failure take longer to notice.
inline constexpr std::int64_t kSilenceForgiveAfterNs = 60 * kNsPerSec;

// A single gap between two looks must not be enough to call a path silent.
static_assert(kSilenceLookEveryNs <= kSilenceMostCountedNs);
static_assert(kSilenceMostCountedNs < kSilenceLeastLimitNs);
static_assert(kSilenceLeastLimitNs <= kSilenceFirstLimitNs);
static_assert(kSilenceFirstLimitNs <= kSilenceMostLimitNs);
// A limit must be able to pass before it is halved.
static_assert(kSilenceMostLimitNs < kSilenceForgiveAfterNs);

// --- The path is fenced and resolved ---

// While a queue pair in ERROR is drained, the control thread looks this often whether it is done,
// because data waits for that and a look is only a poll.
inline constexpr std::int64_t kDrainLookEveryNs = kNsPerMs;
// A driver moves a queue pair to ERROR within microseconds or, on a device that is not well, a
// second or longer; after this time the other end is asked to fence the path, as if the device had
// refused.
inline constexpr std::int64_t kLongestFenceNs = kNsPerSec;
// A device flushes a queue within milliseconds or, as some do, never completes it, so after this
// time the report is taken of what has arrived until then.
inline constexpr std::int64_t kLongestDrainNs = 200 * kNsPerMs;
// If this end's device cannot be fenced, a packet of the path counts as dead this long after the
// peer has fenced, because the peer sends nothing any more and no switch keeps a packet for longer;
// the report relies on it, since a later packet would change a buffer that NCCL has got back.
inline constexpr std::int64_t kLongestWayNs = 200 * kNsPerMs;
// If neither end's device can be fenced, the comm ends only if the peer still says so this time
// after it first did, because a device that is removed refuses before its event is read, and a
// device that is gone needs no fence.
inline constexpr std::int64_t kLongestNewsNs = kNsPerSec;
// Where no READ can flush them, a device's writes to a GPU count as visible this long after the
// device has stopped, because PCIe delivers writes within microseconds, and a root port gives up a
// device that has not answered for 50 ms. A rail also waits so long for another device, by which
// nothing can flush what the former one has written.
inline constexpr std::int64_t kLongestPostedNs = kNsPerSec;
// A receiver waits this long for data that its device has acknowledged: the completion comes within
// microseconds of the acknowledgment or, from a device that has lost the data, never.
inline constexpr std::int64_t kLongestArrivalNs = kNsPerSec;
// In a state that waits for the peer the last message is sent again, because a message is lost if
// the control channel breaks (a channel that resumes also repeats the last FENCED by itself): the
// first delay is longer than an answer takes, and the longest adds at most a second to a repair and
// one message a second to a channel.
inline constexpr Delays kRepeats = {
    .first_ns = 100 * kNsPerMs, .least_later_ns = 200 * kNsPerMs, .most_ns = kNsPerSec};

static_assert(kDrainLookEveryNs < kLongestDrainNs);
static_assert(are_ordered(kRepeats));

// --- The path is made anew ---

// From kClear, the sender offers a new generation at once, since many failures are over when they
// are noticed, and then ever less often, but at least every 5 s, which is how long a connection
// that has no other path may go on waiting after the network is well again. A port that becomes
// active, at either end, does not wait for the next attempt.
inline constexpr Delays kAttempts = {
    .first_ns = 0, .least_later_ns = 100 * kNsPerMs, .most_ns = 5 * kNsPerSec};
// A path that was silent and is up again within this time was only slow, if its port has reported
// nothing, because a network that drops everything rarely recovers so soon. Two attempts and 0.7 s
// for messages and the making of queue pairs fit in.
inline constexpr std::int64_t kFalseAlarmNs =
    kLongestDrainNs + kAttempts.first_ns + kAttempts.after(kAttempts.first_ns) + 700 * kNsPerMs;
// A new queue pair waits this long for flushes and registrations that still use the former one,
// which take microseconds and milliseconds, and for kLongestPostedNs if it is of another device;
// after that it is given up, and the path is tried again.
inline constexpr std::int64_t kLongestJoinNs = 2 * kNsPerSec;
static_assert(kLongestPostedNs < kLongestJoinNs);
// A generation that has lived longer than this has not failed because the way to the peer is still
// broken, so the next attempts begin with the shortest delay again.
inline constexpr std::int64_t kLongLifeNs = 10 * kNsPerSec;
// If several generations in a row (kMostBriefLives) fail by this end's device within this time
// after they were made, the device refuses every queue pair, and trying again would never end.
inline constexpr std::int64_t kBriefLifeNs = kNsPerSec;

// A path that fails again within this time after it was made anew fails often: a link that flaps
// costs each of its connections a fence for each time that they go back to it.
inline constexpr std::int64_t kSteadyNs = 60 * kNsPerSec;
// How long a path that fails often is not made anew while another one works: the first delay is for
// the third failure in a row, since many links go down twice when they come up, and the longest
// keeps what a flapping link costs below what its bandwidth is worth, without leaving one that is
// well again unused for long.
inline constexpr Delays kHolds = {
    .first_ns = 2 * kNsPerSec, .least_later_ns = 2 * kNsPerSec, .most_ns = 30 * kNsPerSec};

// A path that was missing when the connection was made may never be there: the two ports may not
// reach each other. So it is tried ever less often, unless a port becomes active.
inline constexpr Delays kMissingAttempts = {
    .first_ns = 0, .least_later_ns = kNsPerSec, .most_ns = 60 * kNsPerSec};

static_assert(are_ordered(kAttempts) && are_ordered(kHolds) && are_ordered(kMissingAttempts));
static_assert(kHolds.most_ns < kSteadyNs);
// A path that fails at once must not be tried again without a delay.
static_assert(kBriefLifeNs < kLongLifeNs);

// --- Another device stands in ---

// Before another device stands in, no path has worked for this time, because a link that flaps is
// back by then and going back to it would cost a second fence. The own device has its chance first.
inline constexpr std::int64_t kStandInAfterNs =
    kAttempts.first_ns + kAttempts.after(kAttempts.first_ns) + 900 * kNsPerMs;
// While no path is ready for a device that stands in, because one is still being fenced, this is
// how often that is looked at again.
inline constexpr std::int64_t kStandInLookEveryNs = 100 * kNsPerMs;
// While a device stands in, the port of the path's own is asked this often, which is a system call.
inline constexpr std::int64_t kOwnLookEveryNs = kNsPerSec;
// The own device has to be well for this time before the path goes back to it, because each change
// of the device is a fence, and a link that comes up often goes down again.
inline constexpr std::int64_t kWellForNs = 5 * kNsPerSec;
// A port that is well may still not reach the peer: each time that has been tried in vain, the time
// before is doubled, up to this one, so that the tries cost nothing that can be measured.
inline constexpr std::int64_t kLongestWellForNs = 600 * kNsPerSec;
// Beside an own device that works, a sender leaves a device that stands in after the first of these
// times and a receiver after the second: if both ends stand in, on different paths, only the
// sender is to leave, since after that the receiver need not.
inline constexpr std::int64_t kSenderBesideOwnNs = kWellForNs;
inline constexpr std::int64_t kReceiverBesideOwnNs = 2 * kWellForNs;

// A path is moved while it carries data, so nothing hurries; but what was prepared is given up
// after this time, which is longer than both ends take to register all buffers with a device.
inline constexpr std::int64_t kLongestMoveNs = 30 * kNsPerSec;

// The same for a path that carries nothing, and has to be prepared before it is offered: a message
// may have been lost, and data may wait for the path.
inline constexpr std::int64_t kLongestPrepareNs = 5 * kNsPerSec;

static_assert(kOwnLookEveryNs < kWellForNs && kWellForNs <= kLongestWellForNs);
// An end may notice up to one look late.
static_assert(kSenderBesideOwnNs + kOwnLookEveryNs < kReceiverBesideOwnNs);

// --- The comm waits or ends ---

// When a comm that waits logs that again, after the line about the failure: soon, because people
// look at a job that stands still, and then once a minute, so that a log of the last minute shows
// it.
inline constexpr std::array<std::int64_t, 2> kOutageLogNs = {10 * kNsPerSec, 30 * kNsPerSec};
inline constexpr std::int64_t kOutageLogEveryNs = 60 * kNsPerSec;
// How long the control channel has to explain a failed completion, or data to arrive after a
// goodbye: the channel knows within milliseconds of a process that died, closed or fenced the path,
// and the rest is for a host that is short of CPU.
inline constexpr std::int64_t kGraceNs = 2 * kNsPerSec;
// No more than this counts of a peer's silence at once: if this process was stopped, or has had no
// processor, it may be this end that was silent.
inline constexpr std::int64_t kLongestSilenceAtOnceNs = 5 * kNsPerSec;
// A message that has failed on two paths within this time would fail on every path: it is sent
// again within a second of the first failure, and a later message may have the same number.
inline constexpr std::int64_t kRefusedAgainNs = 10 * kNsPerSec;
// How far back the cause of a failed request may lie, since with BEELINE_RECOVERY=0 and the default
// timeouts a device retries for half a minute; an older fault of this end's port has not caused it.
inline constexpr std::int64_t kLongestRetryNs = 60 * kNsPerSec;

// The FENCED of a peer that is draining its queue explains a failed completion in time.
static_assert(kLongestDrainNs < kGraceNs);
// By the standard a device gives up after 8 times 4.096 us << 20.
static_assert(8 * (std::int64_t{4096} << 20) < kLongestRetryNs);

}  // namespace beeline::times
