// SPDX-License-Identifier: Apache-2.0
#include "tools/export/deliver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/clock.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/export/http_server.h"
#include "tools/export/stop_signals.h"

namespace beeline::exporter {
namespace {

// The pages are read this often. Traffic between the last look at a process and its end is not
// counted.
constexpr std::int64_t kBetweenLooksNs = kNsPerSec;
// Some drivers ask the firmware for each counter, and anybody on this host may send requests.
constexpr std::int64_t kTextLastsNs = 100 * kNsPerMs;

// Says what goes wrong while this process goes on, once for each change.
class Remarks {
 public:
  void note(const Outcome<void>& outcome) {
    std::string text = outcome ? std::string() : outcome.error().text;
    if (text == last_) return;
    if (!text.empty()) tools::print_error(outcome.error());
    last_ = std::move(text);
  }

 private:
  std::string last_;
};

Outcome<void> write_metrics(Collector& collector, const std::string& file) {
  const std::string text = BL_TRY(collector.text());
  return tools::write_output(file, text);
}

// The text of the last request, if that was a moment ago.
class RecentText {
 public:
  explicit RecentText(Collector& collector) : collector_(collector) {}
  Outcome<std::string> get() {
    if (made_ns_ == 0 || now_ns() - made_ns_ > kTextLastsNs) {
      text_ = BL_TRY(collector_.text());
      made_ns_ = now_ns();
    }
    return text_;
  }

 private:
  Collector& collector_;
  std::string text_;
  std::int64_t made_ns_ = 0;
};

}  // namespace

Outcome<void> print_metrics(const Source& source) {
  Collector collector(source, Mode::kOnce);
  return write_metrics(collector, std::string(tools::kStdout));
}

Outcome<void> write_textfile(const Source& source, const std::string& folder,
                             std::optional<double> seconds) {
  const std::string file = folder + "/beeline.prom";
  if (!seconds) {
    Collector collector(source, Mode::kOnce);
    return tools::write_output_and_say(file, BL_TRY(collector.text()));
  }
  const StopSignals stop = BL_TRY(StopSignals::catch_them());
  Collector collector(source, Mode::kRepeats);
  BL_TRY(write_metrics(collector, file));
  const auto period_ns = static_cast<std::int64_t>(*seconds * 1e9);
  std::int64_t write_ns = now_ns() + period_ns;
  Remarks remarks;
  while (!stop.come_until(std::min(write_ns, now_ns() + kBetweenLooksNs))) {
    if (now_ns() < write_ns) {
      remarks.note(collector.look());
    } else {
      remarks.note(write_metrics(collector, file));
      write_ns = std::max(write_ns + period_ns, now_ns());
    }
  }
  ::unlink(file.c_str());
  return {};
}

Outcome<void> serve_metrics(const Source& source, int port) {
  const StopSignals stop = BL_TRY(StopSignals::catch_them());
  Collector collector(source, Mode::kRepeats);
  BL_TRY(collector.look());
  HttpServer server = BL_TRY(HttpServer::listen(port));
  fmt::print("http://127.0.0.1:{}/metrics\n", server.port());
  std::fflush(stdout);
  RecentText text(collector);
  Remarks remarks;
  while (!server.serve_until(now_ns() + kBetweenLooksNs, stop.fd(), [&] { return text.get(); })) {
    remarks.note(collector.look());
  }
  return {};
}

}  // namespace beeline::exporter
