// SPDX-License-Identifier: Apache-2.0
//
// Tests behaviors of RDMA devices on which programs rely. Runs every test of the catalogue between
// two devices of this host, and prints the outcome and the specified outcome.
//
//   conformance --devices A,B [--only GLOB] [--list] [--json] [--expect FILE --fabric COLUMN]
//
// With --expect the outcomes are compared with a committed table, and the exit status is 1 if one
// differs. Without it, the exit status is 0 whatever the outcomes are.
#include <fnmatch.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/expected.h"

namespace conformance {
namespace {

constexpr unsigned kLongestBehavior = 60;  // seconds; waits within a test are much shorter

struct Options {
  std::string device_a;
  std::string device_b;
  std::string only = "*";
  std::string expect;
  std::string fabric;
  bool list = false;
  bool json = false;
};

struct Row {
  const Behavior* behavior;
  std::string outcome;
};

[[noreturn]] void usage() {
  std::fputs(
      "conformance --devices A,B [--only GLOB] [--list] [--json] [--expect FILE --fabric COLUMN]\n",
      stderr);
  std::exit(2);
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = words[i];
    const auto value = [&]() -> std::string { return i + 1 < count ? words[++i] : (usage(), ""); };
    if (name == "--list") {
      options.list = true;
    } else if (name == "--json") {
      options.json = true;
    } else if (name == "--only") {
      options.only = value();
    } else if (name == "--expect") {
      options.expect = value();
    } else if (name == "--fabric") {
      options.fabric = value();
    } else if (name == "--devices") {
      const std::string both = value();
      options.device_a = both.substr(0, both.find(','));
      options.device_b = both.substr(both.find(',') + 1);
    } else {
      usage();
    }
  }
  if (!options.list && options.device_a.empty()) usage();
  if (options.expect.empty() != options.fabric.empty()) usage();
  return options;
}

// Ends the program, with the name of the test, if a call into the kernel does not return.
char running[128];
void give_up(int) {
  const char* text = ": a call did not return\n";
  (void)!::write(STDERR_FILENO, running, std::strlen(running));
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
  ::_exit(3);
}

std::string observe(const Behavior& behavior, Lab& lab) {
  std::snprintf(running, sizeof running, "%s", behavior.name.c_str());
  ::alarm(kLongestBehavior);
  std::string outcome;
  try {
    outcome = behavior.run(lab);
  } catch (const SetupFailed& failed) {
    outcome = "setup failed: " + failed.why;
  }
  ::alarm(0);
  return outcome;
}

void print_text(const Row& row) {
  const Worth worth = worth_of(row.behavior->spec, row.outcome);
  std::printf("%-6s  %-42s  %s", to_string(worth), row.behavior->name.c_str(), row.outcome.c_str());
  if (worth == Worth::kAgainstSpec) std::printf("   spec: %s", row.behavior->spec.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

// Names and outcomes have no characters that JSON must escape.
void print_json(const std::vector<Row>& rows) {
  std::printf("[\n");
  for (const Row& row : rows) {
    std::printf(R"(  {"name": "%s", "outcome": "%s", "spec": "%s", "worth": "%s"}%s)"
                "\n",
                row.behavior->name.c_str(), row.outcome.c_str(), row.behavior->spec.c_str(),
                to_string(worth_of(row.behavior->spec, row.outcome)),
                &row == &rows.back() ? "" : ",");
  }
  std::printf("]\n");
}

Expectations load_expectations(const Options& options) {
  std::string why;
  if (options.expect.empty()) return {};
  Expectations expected = read_expectations(options.expect, options.fabric, why);
  if (!why.empty()) throw SetupFailed{why};
  return expected;
}

struct Differences {
  int count = 0;
  void add(const std::string& name, const char* what, const std::string& is,
           const std::string& expected) {
    std::fprintf(stderr, "%s: %s is \"%s\", the table has \"%s\"\n", name.c_str(), what, is.c_str(),
                 expected.c_str());
    ++count;
  }
};

// Prints outcomes that differ from the table to stderr and returns their number.
int compare(const std::vector<Row>& rows, const Options& options, Expectations expected) {
  Differences differences;
  for (const Row& row : rows) {
    const std::string& name = row.behavior->name;
    const auto line = expected.find(name);
    if (line == expected.end()) {
      differences.add(name, "behaviour", row.outcome, "no such line");
      continue;
    }
    if (line->second.spec != row.behavior->spec) {
      differences.add(name, "spec", row.behavior->spec, line->second.spec);
    } else if (line->second.outcome != row.outcome && row.outcome != kDoesNotApply) {
      differences.add(name, "outcome", row.outcome, line->second.outcome);
    }
    expected.erase(line);
  }
  const int as_expected = static_cast<int>(rows.size()) - differences.count;
  for (const auto& [name, line] : expected) {
    if (::fnmatch(options.only.c_str(), name.c_str(), 0) != 0) continue;
    differences.add(name, "behaviour", "gone", line.outcome);
  }
  std::printf("%d passed, %d failed, 0 skipped\n", as_expected, differences.count);
  return differences.count;
}

int examine(const Options& options) {
  const Catalogue all = whole_catalogue();
  std::vector<const Behavior*> chosen;
  for (const Behavior& behavior : all) {
    if (::fnmatch(options.only.c_str(), behavior.name.c_str(), 0) == 0) {
      chosen.push_back(&behavior);
    }
  }
  if (options.list) {
    for (const Behavior* behavior : chosen) {
      std::printf("%s\t%s\n", behavior->name.c_str(), behavior->spec.c_str());
    }
    return 0;
  }
  const Expectations expected = load_expectations(options);
  Lab lab{Device(options.device_a), Device(options.device_b)};
  std::vector<Row> rows;
  for (const Behavior* behavior : chosen) {
    rows.push_back({behavior, observe(*behavior, lab)});
    if (!options.json) print_text(rows.back());
  }
  if (options.json) print_json(rows);
  std::fflush(stdout);
  return options.expect.empty() || compare(rows, options, expected) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace conformance

int main(int count, char** words) {
  ::signal(SIGALRM, conformance::give_up);
  try {
    return conformance::examine(conformance::parse(count, words));
  } catch (const conformance::SetupFailed& failed) {
    std::fprintf(stderr, "conformance: %s\n", failed.why.c_str());
    return 2;
  }
}
