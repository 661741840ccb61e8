// SPDX-License-Identifier: Apache-2.0
//
// Lists the steps that may follow a state of the model.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/repair/path_machine.h"
#include "tests/plugin/unit/recovery_model.h"
#include "tests/plugin/unit/recovery_model_world.h"

namespace beeline::test {

inline PathState state_of(const ModelEnd& end) noexcept {
  return static_cast<PathState>(end.state);
}

class ModelSteps {
 public:
  ModelSteps(Model& model, const ModelState& state, std::vector<ModelStep>& steps)
      : model_(model), state_(state), steps_(steps) {}

  void list();

 private:
  // `change` gets the world to be changed.
  template <class Change>
  void add(const char* name, std::uint8_t path, Change&& change,
           StepSort sort = StepSort::kProgress, std::uint8_t detail = 0) {
    ModelWorld world(model_, state_);
    change(world);
    steps_.push_back({.next = world.state(),
                      .name = name,
                      .path = path,
                      .detail = detail,
                      .sort = sort,
                      .wrong = world.wrong()});
  }
  void add_local(const char* name, bool is_sender, std::uint8_t path, PathEvent::Kind kind) {
    add(name, path, [=](ModelWorld& world) { world.local(is_sender, path, kind); });
  }
  static bool has_room(const ModelChannel& channel) { return channel.back().kind == 0; }

  // The two ends: recovery_model_ends.cc
  void list_sender(std::uint8_t path);
  void list_posts(std::uint8_t path);
  void list_offers(std::uint8_t path);
  void list_making(bool is_sender, std::uint8_t path);
  void list_sender_failures(std::uint8_t path);
  void list_receiver(std::uint8_t path);
  void list_grants(std::uint8_t path);
  void list_receiver_failures(std::uint8_t path);
  // What is between them, and faults: recovery_model_network.cc
  void list_ports(bool is_sender, std::uint8_t path, ModelFault at_this_port);
  void list_nics(std::uint8_t path);
  void list_ends();
  void list_channel();
  void list_repeats();
  void list_faults(std::uint8_t path);
  void list_channel_faults(bool to_receiver);

  Model& model_;
  const ModelState& state_;
  std::vector<ModelStep>& steps_;
};

}  // namespace beeline::test
