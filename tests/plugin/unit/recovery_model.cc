// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/unit/recovery_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugin/repair/path_machine.h"
#include "plugin/transfer/path_reports.h"
#include "tests/plugin/unit/recovery_model_steps.h"

namespace beeline::test {

void ModelSteps::list() {
  list_ends();
  list_channel();
  for (std::uint8_t path = 0; path < model_.options().paths; ++path) {
    list_sender(path);
    list_receiver(path);
    list_nics(path);
  }
  const bool is_quiet = std::ranges::none_of(
      steps_, [](const ModelStep& step) { return step.sort == StepSort::kProgress; });
  if (is_quiet) list_repeats();
  for (std::uint8_t path = 0; path < model_.options().paths; ++path) list_faults(path);
  for (const bool to_receiver : {true, false}) list_channel_faults(to_receiver);
}

std::vector<ModelState> Model::first_states() const {
  ModelState first;
  first.carriers.fill(kGrantArrived);
  first.failures = options_.failures;
  first.lost = options_.lost;
  first.late_left = options_.late;
  first.vain_offers = options_.vain_offers;
  if (options_.starts_alone) {
    for (ModelEnd* const end : {&first.paths[1].sender, &first.paths[1].receiver}) {
      *end = {.state = static_cast<std::uint8_t>(PathState::kClear),
              .live = 0,
              .is_joined = false,
              .may_grant = false};
    }
  }
  // The paths are alike, so that it does not matter which of them does not heal.
  ModelState with_bad_path = first;
  with_bad_path.paths[1].never_heals = true;
  if (options_.paths == 1) return {first};
  return {first, with_bad_path};
}

void Model::list_steps(const ModelState& state, std::vector<ModelStep>& steps) {
  steps.clear();
  if (state.is_end()) return;
  ModelSteps(*this, state, steps).list();
}

std::string text_of(const ModelStep& step) {
  static constexpr const char* kStates[] = {"Up",     "Fencing", "Fenced",  "Clear",
                                            "Making", "Offered", "Probing", "Answered"};
  std::string text = std::string(step.name) + " (path " + std::to_string(step.path) + ", " +
                     std::to_string(step.detail) + "):";
  for (const ModelPath& path : step.next.paths) {
    text += std::string("  ") + kStates[path.sender.state] + "." +
            std::to_string(path.sender.generation) + "/" + kStates[path.receiver.state] + "." +
            std::to_string(path.receiver.generation);
  }
  text += "  acked";
  for (const Chunks acked : step.next.acked) text += " " + std::to_string(acked);
  text += ", got";
  for (const Chunks got : step.next.got) text += " " + std::to_string(got);
  text += ", memory";
  for (const Chunks memory : step.next.memory) text += " " + std::to_string(memory);
  return text;
}

}  // namespace beeline::test
