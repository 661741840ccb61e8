// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <set>

#include "tests/support/catch.h"
#include "tools/doctor/peers/coordinator.h"
#include "tools/doctor/peers/heat_map.h"
#include "tools/doctor/peers/tables.h"
#include "tools/doctor/peers/verdicts.h"

namespace beeline::doctor {
namespace {

// Hosts a, b and so on, with rails r0, r1 and so on of 100 Gb/s.
Survey survey_of(std::size_t hosts, std::size_t rails) {
  Survey survey;
  for (std::size_t h = 0; h < hosts; ++h) {
    SurveyedHost& host = survey.hosts.emplace_back();
    host.name = std::string(1, static_cast<char>('a' + h));
    for (std::size_t r = 0; r < rails; ++r) {
      host.rails.rails.push_back({.name = "r" + std::to_string(r), .mbps = 100'000});
    }
  }
  return survey;
}

// All rails of two hosts with each other, all alike.
Survey matrix_of(std::size_t rails) {
  Survey survey = survey_of(2, rails);
  for (std::size_t i = 0; i < rails; ++i) {
    for (std::size_t k = 0; k < rails; ++k) {
      survey.pairs.push_back({.a = {0, i}, .b = {1, k}, .round_trip_us = 5, .gbytes_per_s = 12});
    }
  }
  return survey;
}

ProbedPair& pair_of(Survey& survey, std::size_t a, std::size_t b) {
  return survey.pairs[a * survey.hosts[0].rails.rails.size() + b];
}

using Found = std::set<std::pair<std::string, std::string>>;

Found found_in(const Survey& survey) {
  Found found;
  for (const Finding& finding : judge(survey)) {
    found.emplace(std::string(finding.id), finding.subject);
  }
  return found;
}

}  // namespace

TEST_CASE("doctor, peers: rounds connect all hosts, with each host once in a round", "[tools]") {
  for (std::size_t hosts = 2; hosts <= 70; ++hosts) {
    const auto rounds = rounds_of(hosts);
    CHECK(std::size_t{1} << (rounds.size() - 1) < hosts);
    std::set<std::size_t> reached = {0};
    for (const auto& round : rounds) {
      std::set<std::size_t> busy;
      for (const auto& [a, b] : round) {
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        if (reached.contains(a)) reached.insert(b);
      }
    }
    CHECK(reached.size() == hosts);
  }
}

TEST_CASE("doctor, peers: pairs are compared with others of their speed", "[tools]") {
  Survey survey = matrix_of(4);
  CHECK(found_in(survey).empty());
  for (std::size_t k = 0; k < 4; ++k) pair_of(survey, 3, k).gbytes_per_s = 6;
  CHECK(found_in(survey) == Found{{"rail-slow", "a r3"}});
  survey.hosts[0].rails.rails[3].mbps = 50'000;  // so it is as fast as it should be
  CHECK(found_in(survey).empty());
  pair_of(survey, 0, 2).gbytes_per_s = 6;
  CHECK(found_in(survey) == Found{{"pair-slow", "a r0 and b r2"}});
  pair_of(survey, 0, 1).gbytes_per_s = 6;  // half of the pairs of a rail are not the rail
  CHECK(found_in(survey) == Found{{"pair-slow", "a r0 and b r1"}, {"pair-slow", "a r0 and b r2"}});
}

TEST_CASE("doctor, peers: cards that are all slow are compared with their ports", "[tools]") {
  const auto slow_matrix = [](const std::string& model, const std::string& link) {
    Survey survey = matrix_of(2);
    for (SurveyedHost& host : survey.hosts) {
      for (Rail& rail : host.rails.rails) {
        host.examined.card.emplace_back(rail.name + ": model", model);
        if (!link.empty()) host.examined.card.emplace_back(rail.name + ": PCIe", link);
      }
    }
    for (ProbedPair& pair : survey.pairs) pair.gbytes_per_s = 3;
    return survey;
  };
  const Found all_slow = {{"rails-below-their-ports", "rails of 100 Gb/s"}};
  CHECK(found_in(slow_matrix("MT4129", "16.0 GT/s PCIe x16")) == all_slow);
  CHECK(found_in(slow_matrix("softnic", "16.0 GT/s PCIe x16")).empty());
  CHECK(found_in(slow_matrix("", "")).empty());  // rxe
  Survey half = slow_matrix("MT4129", "16.0 GT/s PCIe x16");
  for (ProbedPair& pair : half.pairs) pair.gbytes_per_s = 6;
  CHECK(found_in(half).empty());
  Survey one_slower = slow_matrix("MT4129", "16.0 GT/s PCIe x16");
  pair_of(one_slower, 0, 1).gbytes_per_s = 1;
  CHECK(found_in(one_slower) ==
        Found{{"rails-below-their-ports", "rails of 100 Gb/s"}, {"pair-slow", "a r0 and b r1"}});
  for (SurveyedHost& host : half.hosts) {
    for (Rail& rail : host.rails.rails) rail.name += ":2";  // a port of a card with several
  }
  for (ProbedPair& pair : half.pairs) pair.gbytes_per_s = 3;
  CHECK(found_in(half) == all_slow);
}

TEST_CASE("doctor, peers: the headings fit into the picture of few rails", "[tools]") {
  const std::string title =
      "Rails between node-with-a-long-name-0001 and node-with-a-long-name-0002";
  const std::string svg = heat_map_svg(title, tables_of(matrix_of(2)));
  const auto number_after = [&svg](const std::string& word, std::size_t from) {
    return std::stod(svg.substr(svg.find(word, from) + word.size()));
  };
  // A character of a bold font is about 0.6 times as wide as it is high.
  const double width = number_after("width=\"", 0);
  std::size_t headings = 0;
  for (std::size_t at = svg.find("<text"); at != std::string::npos;
       at = svg.find("<text", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    const std::string style = svg.substr(at, begin - at);
    if (style.find("bold") == std::string::npos) continue;
    ++headings;
    const std::string text = svg.substr(begin, svg.find('<', begin) - begin);
    const double size = style.find("font-size") == std::string::npos ? 13 : 18;
    INFO(text);
    CHECK(number_after("x=\"", at) + 0.6 * size * static_cast<double>(text.size()) < width);
  }
  CHECK(headings == 2);
}

TEST_CASE("doctor, peers: a pair is single if neither of its rails explains it", "[tools]") {
  Survey survey = matrix_of(4);
  for (std::size_t k = 0; k < 4; ++k) pair_of(survey, 3, k).gbytes_per_s = 6;
  for (std::size_t i = 0; i < 3; ++i) pair_of(survey, i, 1).round_trip_us = 40;
  CHECK(odd_pairs(survey).size() == 7);
  CHECK(single_odd_pairs(survey).empty());
  pair_of(survey, 0, 2).gbytes_per_s = 6;
  pair_of(survey, 1, 3).round_trip_us = 40;
  CHECK(odd_pairs(survey).size() == 9);
  CHECK(single_odd_pairs(survey).size() == 2);
}

TEST_CASE("doctor, peers: a rail that answers late is found, unless it is slow as well",
          "[tools]") {
  Survey survey = matrix_of(4);
  for (std::size_t i = 0; i < 4; ++i) pair_of(survey, i, 1).round_trip_us = 40;
  CHECK(found_in(survey) == Found{{"rail-slow", "b r1"}});
  for (std::size_t i = 0; i < 4; ++i) pair_of(survey, i, 1).gbytes_per_s = 1;
  CHECK(judge(survey).size() == 1);
  // A few microseconds more are another way through the fabric.
  survey = matrix_of(4);
  for (ProbedPair& pair : survey.pairs) pair.round_trip_us = pair.b.rail == 1 ? 12 : 3;
  CHECK(found_in(survey).empty());
}

TEST_CASE("doctor, peers: the memory of a GPU is not compared, but has to be reached", "[tools]") {
  Survey survey = matrix_of(2);
  const Survey hosts_only = survey;
  for (ProbedPair pair : hosts_only.pairs) {
    pair.in_gpu_memory = true;
    pair.gbytes_per_s = 1 + static_cast<double>(pair.a.rail);
    survey.pairs.push_back(pair);
  }
  CHECK(found_in(survey).empty());
  survey.pairs.back().failure = "refused";
  CHECK(found_in(survey) == Found{{"pair-unreachable", "a r1 and b r1 (GPU memory)"}});
}

TEST_CASE("doctor, peers: several networks are told from rails that are cut off", "[tools]") {
  Survey survey = matrix_of(4);
  for (ProbedPair& pair : survey.pairs) {
    if (pair.a.rail / 2 != pair.b.rail / 2) pair.failure = "no answer";
  }
  CHECK(found_in(survey) == Found{{"rails-apart", ""}});
  for (std::size_t k = 0; k < 4; ++k) pair_of(survey, 1, k).failure = "no answer";
  CHECK(found_in(survey) == Found{{"rails-apart", ""}, {"rail-unreachable", "a r1"}});
}

TEST_CASE("doctor, peers: a rail with one pair is not blamed for it", "[tools]") {
  Survey survey = survey_of(3, 1);
  survey.pairs = {{.a = {0, 0}, .b = {1, 0}, .round_trip_us = 5, .gbytes_per_s = 12},
                  {.a = {0, 0}, .b = {2, 0}, .failure = "no answer"}};
  CHECK(found_in(survey) == Found{{"pair-unreachable", "a r0 and c r0"}});
}

TEST_CASE("doctor, peers: the slower direction counts, and the failure that came first",
          "[tools]") {
  const ProbeResult fast = {.round_trip_us = 4, .gbytes_per_s = 12};
  const ProbeResult slow = {.round_trip_us = 5, .gbytes_per_s = 3};
  for (const auto& [early, late] : {std::pair(fast, slow), std::pair(slow, fast)}) {
    const ProbedPair pair = joined({}, early, late);
    CHECK(pair.gbytes_per_s == 3);
    CHECK(pair.round_trip_us == 4);
    CHECK(pair.failure.empty());
  }
  const ProbeResult refused = {.failure = "refused"};
  const ProbeResult stopped = {.failure = "the other end has given up", .is_wrong = true};
  CHECK(joined({}, refused, stopped).failure == "refused");
  CHECK(joined({}, refused, stopped).is_wrong);
  CHECK(joined({}, fast, refused).failure == "refused");
}

TEST_CASE("doctor, peers: wrong data is its own fault, and not that of the network", "[tools]") {
  Survey survey = matrix_of(2);
  for (ProbedPair& pair : survey.pairs) {
    pair.failure = "other bytes arrive";
    pair.is_wrong = true;
  }
  CHECK(found_in(survey) == Found{{"data-wrong", "a r0 and b r0"},
                                  {"data-wrong", "a r0 and b r1"},
                                  {"data-wrong", "a r1 and b r0"},
                                  {"data-wrong", "a r1 and b r1"}});
}

TEST_CASE("doctor, peers: the findings of each host are repeated with its name", "[tools]") {
  Survey survey = matrix_of(1);
  survey.hosts[1].examined.findings = {
      {.id = "memlock-low", .severity = Severity::kWarning, .fact = "it is 64 KiB"},
      {.id = "nccl-conf", .severity = Severity::kNote, .fact = "/etc/nccl.conf sets something"}};
  const std::vector<Finding> findings = judge(survey);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].subject == "b");
  CHECK(findings[0].fact == "b: it is 64 KiB");
  CHECK(findings[0].severity == Severity::kWarning);
}

TEST_CASE("doctor, peers: colors leave the columns of a table aligned", "[tools]") {
  Survey survey = matrix_of(3);
  survey.hosts[1].rails.rails[0].name = "slow0";  // not a mark
  for (std::size_t k = 0; k < 3; ++k) pair_of(survey, 1, k).gbytes_per_s = 1;
  pair_of(survey, 2, 2).failure = "no answer";
  const std::vector<PairTable> tables = tables_of(survey);
  REQUIRE(tables.size() == 1);
  std::string colored = table_text(tables[0], {.in_color = true});
  CHECK(colored.find("\033[33mslow\033[0m") != std::string::npos);
  CHECK(colored.find("\033[31mnone\033[0m") != std::string::npos);
  CHECK(colored.find("\033[33mslow\033[0m0") == std::string::npos);
  for (std::size_t at = colored.find('\033'); at != std::string::npos; at = colored.find('\033')) {
    colored.erase(at, colored.find('m', at) - at + 1);
  }
  CHECK(colored == table_text(tables[0], {}));
}

// In kilobytes.
long most_memory_so_far() {
  rusage used{};
  REQUIRE(::getrusage(RUSAGE_SELF, &used) == 0);
  return used.ru_maxrss;
}

TEST_CASE("doctor, peers: deeply nested lists of another host take little memory", "[tools]") {
  constexpr std::size_t kDepth = 2'000'000;  // of which each takes 80 bytes if it is kept
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const std::string line = R"({"text": "a handle", "more": )" + deep + "}";
  const long before = most_memory_so_far();
  const Outcome<std::string> read = decode_text(line);
  CHECK(most_memory_so_far() - before < 100'000);
  REQUIRE(read);
  CHECK(*read == "a handle");
}

TEST_CASE("doctor, peers: messages keep their contents, and a refusal its reason", "[tools]") {
  const ProbeResult result = {
      .failure = "bad \xff byte", .is_wrong = true, .round_trip_us = 1.5, .gbytes_per_s = 2.5};
  const Outcome<ProbeResult> read = decode_result(encode(result));
  REQUIRE(read);
  CHECK(read->failure == "bad \xef\xbf\xbd byte");
  CHECK(read->is_wrong);
  CHECK(read->gbytes_per_s == 2.5);
  CHECK(decode_rails(encode_refusal("no device")).error().text == "no device");
  CHECK(decode_rails(encode_refusal("no\nbeeline: \033[2J")).error().text == "no?beeline: ?[2J");
  for (const char* const stranger :
       {"", "{", "[]", "{\"rails\": 1}", "Permission denied", "null"}) {
    INFO(stranger);
    CHECK_FALSE(decode_rails(stranger));
  }
}

}  // namespace beeline::doctor
