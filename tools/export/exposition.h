// SPDX-License-Identifier: Apache-2.0
//
// Writes the text format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace beeline::exporter {

enum class Kind : std::uint8_t { kCounter, kGauge };

struct Family {
  std::string_view name;
  Kind kind = Kind::kGauge;
  std::string help = {};
};

struct Label {
  std::string_view name;
  std::string_view value;
};

// Lifecycle: a value. Threads: one.
class Exposition {
 public:
  // The label `host` with this value is in every sample.
  explicit Exposition(std::string_view host);

  // The samples that follow are of this family. One without samples is left out.
  void begin(const Family& family);
  void add(const std::vector<Label>& labels, std::uint64_t value);
  void add(const std::vector<Label>& labels, double value);

  const std::string& text() const noexcept { return text_; }

 private:
  void add_text(const std::vector<Label>& labels, const std::string& value);

  std::string host_;
  std::string name_;
  std::string header_;  // of the family, until its first sample
  std::string text_;
};

}  // namespace beeline::exporter
