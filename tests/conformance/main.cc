// SPDX-License-Identifier: Apache-2.0
//
// How do two RDMA devices behave where programs rely on it? Runs every behaviour of the catalogue
// between two devices of this host and prints what happened beside what the specification wants.
//
//   conformance --devices A,B [--only GLOB] [--list] [--json] [--expect FILE --fabric COLUMN]
//
// With --expect the outcomes are compared with a committed table and the exit status is 1 if any
// differs; otherwise it is 0 whatever the device does.
#include <fnmatch.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/catalogue.h"
#include "tests/conformance/expected.h"

namespace conformance {
namespace {

constexpr unsigned kLongestBehaviour = 60;  // seconds; the waits inside are far shorter

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
  const Behaviour* behaviour;
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

// The name is for the one who must die waiting: a call into the kernel has no deadline.
char running[128];
void give_up(int) {
  const char* text = ": a call did not return\n";
  (void)!::write(STDERR_FILENO, running, std::strlen(running));
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
  ::_exit(3);
}

std::string observe(const Behaviour& behaviour, Lab& lab) {
  std::snprintf(running, sizeof running, "%s", behaviour.name.c_str());
  ::alarm(kLongestBehaviour);
  std::string outcome;
  try {
    outcome = behaviour.run(lab);
  } catch (const SetupFailed& failed) {
    outcome = "setup failed: " + failed.why;
  }
  ::alarm(0);
  return outcome;
}

void print_text(const Row& row) {
  const Worth worth = worth_of(row.behaviour->spec, row.outcome);
  std::printf("%-6s  %-42s  %s", to_string(worth), row.behaviour->name.c_str(),
              row.outcome.c_str());
  if (worth == Worth::kAgainstSpec) std::printf("   spec: %s", row.behaviour->spec.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

// Names and outcomes contain nothing that JSON would have to escape.
void print_json(const std::vector<Row>& rows) {
  std::printf("[\n");
  for (const Row& row : rows) {
    std::printf(R"(  {"name": "%s", "outcome": "%s", "spec": "%s", "worth": "%s"}%s)"
                "\n",
                row.behaviour->name.c_str(), row.outcome.c_str(), row.behaviour->spec.c_str(),
                to_string(worth_of(row.behaviour->spec, row.outcome)),
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

// How many behaviours are not as the table has them; each is told on stderr.
int compare(const std::vector<Row>& rows, const Options& options, Expectations expected) {
  Differences differences;
  for (const Row& row : rows) {
    const std::string& name = row.behaviour->name;
    const auto line = expected.find(name);
    if (line == expected.end()) {
      differences.add(name, "behaviour", row.outcome, "no such line");
      continue;
    }
    if (line->second.spec != row.behaviour->spec) {
      differences.add(name, "spec", row.behaviour->spec, line->second.spec);
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
  std::vector<const Behaviour*> chosen;
  for (const Behaviour& behaviour : all) {
    if (::fnmatch(options.only.c_str(), behaviour.name.c_str(), 0) == 0) {
      chosen.push_back(&behaviour);
    }
  }
  if (options.list) {
    for (const Behaviour* behaviour : chosen) {
      std::printf("%s\t%s\n", behaviour->name.c_str(), behaviour->spec.c_str());
    }
    return 0;
  }
  const Expectations expected = load_expectations(options);
  Lab lab{Device(options.device_a), Device(options.device_b)};
  std::vector<Row> rows;
  for (const Behaviour* behaviour : chosen) {
    rows.push_back({behaviour, observe(*behaviour, lab)});
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
