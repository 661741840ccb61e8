// SPDX-License-Identifier: Apache-2.0
//
// A state of the model while a step changes it: what the ends, the NICs and the control channel do.
// recovery_model_steps.h decides what may happen when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/repair/engine.h"
#include "plugin/transfer/path_reports.h"
#include "tests/plugin/unit/recovery_model.h"

namespace beeline::test {

class ModelWorld {
 public:
  ModelWorld(Model& model, const ModelState& state) noexcept : model_(model), state_(state) {}

  const ModelState& state() const noexcept { return state_; }
  ModelState& state() noexcept { return state_; }
  const char* wrong() const noexcept { return wrong_; }

  // --- An end and one of its paths: recovery_model_table.cc ---

  // Feeds the product's engine, and carries out what it says. `report` came with the event; 0:
  // none.
  void event(bool is_sender, std::uint8_t path, const PathEvent& event, std::uint16_t report);
  void local(bool is_sender, std::uint8_t path, PathEvent::Kind kind) {
    event(is_sender, path, {.kind = kind}, 0);
  }

  // --- The sender ---
  void take_line();
  void post(std::uint8_t path, std::uint8_t line, Chunks chunks);
  void poll_acks(std::uint8_t path);
  void close_sender(bool says_goodbye);

  // --- The receiver ---
  bool may_grant_next() const;
  void grant(std::uint8_t path, std::uint8_t line);
  void poll_notices(std::uint8_t path, std::uint8_t line);
  void close_receiver();

  // Either end counts what has arrived on a path in ERROR.
  void drain(bool is_sender, std::uint8_t path);

  // --- The NICs, for the oldest packet or grant of the path ---
  void place_data(std::uint8_t path);
  void announce_data(std::uint8_t path);
  void drop_data(std::uint8_t path);
  void place_grant(std::uint8_t path);
  void drop_grant(std::uint8_t path);

  // --- The control channel ---
  void send(bool to_receiver, const ModelMessage& message);
  ModelMessage take_oldest(bool from_sender);
  void deliver(bool to_receiver);

 private:
  ModelEnd& end(bool is_sender, std::uint8_t path) noexcept {
    ModelPath& both = state_.paths[path];
    return is_sender ? both.sender : both.receiver;
  }
  const ModelOptions& options() const noexcept { return model_.options(); }
  Chunks all_of(std::size_t line) const noexcept { return options().chunks[line]; }
  void claim(bool holds, const char* wrong) noexcept {
    if (!holds && wrong_ == nullptr) wrong_ = wrong;
  }

  void run(bool is_sender, const RepairEvent& event, std::uint16_t report);
  static void join(bool is_sender, ModelEnd& our);
  void act(bool is_sender, const RepairCommand& command, std::uint16_t report);
  void send_message(bool is_sender, PathEvent::Kind kind, const RepairCommand& command);
  void take_report_of_sender(std::uint8_t path);
  void take_report_of_receiver(std::uint8_t path);
  void resolve_as_sender(std::uint8_t path);
  void resolve_as_receiver(std::uint8_t path);
  void destroy_queues(bool is_sender, std::uint8_t path);
  void make_queues(bool is_sender, std::uint8_t path);
  void acknowledge(std::size_t line, Chunks chunks);

  // The product's view of the lines in the ring; the first is first_in_ring().
  std::vector<GrantedLine> lines_in_ring() const;
  std::size_t first_in_ring() const noexcept;

  Model& model_;
  ModelState state_;
  const char* wrong_ = nullptr;
};

}  // namespace beeline::test
