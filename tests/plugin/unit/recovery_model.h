// SPDX-License-Identifier: Apache-2.0
//
// A model of one comm with two paths that fail: two ends that run the product's engine
// (plugin/repair/engine.h) and its reports (plugin/transfer/path_reports.h), the NICs and
// links between them, a control channel, and faults in all of these. Model::list_steps() says
// everything that may happen next in a state. Each step is what one party does without looking at
// another:
//
//   sender    takes credit lines in order and divides the chunks of a message in any way
//   receiver  grants lines, counts chunks, and reports a message when all chunks have come
//   NICs      place data first and announce it later, so that a failure may come between the two
//   faults    links and ports fail, healthy paths are declared dead, queue pairs cannot be made;
//             control messages are lost, late and doubled
//
// Each kind of fault has a budget. There is no time: a message is repeated only when nothing else
// can happen.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugin/wire/reports.h"
#include "tests/plugin/unit/recovery_model_state.h"

namespace beeline::test {

enum class ModelRefuses : std::uint8_t { kNobody, kSender, kReceiver };

struct ModelOptions {
  std::uint8_t paths = 2;
  std::uint8_t lines = 2;   // messages that are sent, of one credit line each
  std::uint8_t ring = 1;    // lines that the ring has room for: 1 or 2
  ByLine chunks = {3, 1};   // all of each message
  bool optional = false;    // the receives are optional, and all have the same buffer
  bool port_events = true;  // a port may fail, which its end is told, and not only a link
  // The end whose devices do not move a queue pair to ERROR.
  ModelRefuses refuses = ModelRefuses::kNobody;
  bool starts_alone = false;  // path 1 could not be made when the comm was connected
  // A comm that is closed answers what comes for it. That is not in the table, but must be so.
  bool closed_answers = true;
  // Budgets.
  std::uint8_t failures = 1;
  std::uint8_t lost = 0;         // control messages
  std::uint8_t late = 0;         // control messages that come a second time, later
  std::uint8_t vain_offers = 1;  // made although the path is broken
};

enum class StepSort : std::uint8_t {
  kProgress,
  kRepeat,  // a message is said again, because nothing else can happen
  kFault,   // taken from a budget
};

struct ModelStep {
  ModelState next;
  const char* name = nullptr;
  std::uint8_t path = 0;
  std::uint8_t detail = 0;
  StepSort sort = StepSort::kProgress;
  const char* wrong = nullptr;  // the claim that this step breaks
};

// All reports of one kind that an end has made, so that a state only contains their numbers.
template <class Report>
class ModelReports {
 public:
  std::uint16_t number(const Report& report) {
    const auto known = std::ranges::find(reports_, report);
    const auto made = static_cast<std::uint16_t>(known - reports_.begin());
    if (known == reports_.end()) reports_.push_back(report);
    return made;
  }
  const Report& operator[](std::uint16_t number) const { return reports_[number]; }

 private:
  std::vector<Report> reports_ = {Report{}};  // 0: none
};

class Model {
 public:
  explicit Model(const ModelOptions& options) : options_(options) {}

  std::vector<ModelState> first_states() const;
  // Replaces `steps` by all that may happen in this state.
  void list_steps(const ModelState& state, std::vector<ModelStep>& steps);

  const ModelOptions& options() const noexcept { return options_; }
  ModelReports<wire::ReceiverReport>& receiver_reports() noexcept { return receiver_reports_; }
  ModelReports<wire::SenderReport>& sender_reports() noexcept { return sender_reports_; }

 private:
  const ModelOptions options_;
  ModelReports<wire::ReceiverReport> receiver_reports_;
  ModelReports<wire::SenderReport> sender_reports_;
};

// For people: what a step was, and what the state is after it.
std::string text_of(const ModelStep& step);

}  // namespace beeline::test
