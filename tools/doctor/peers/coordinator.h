// SPDX-License-Identifier: Apache-2.0
//
// Asks the doctors of several hosts to examine their hosts, and then to probe the connections
// between them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/peers/survey.h"
#include "tools/ranks/line_stream.h"

namespace beeline::doctor {

struct Peer {
  std::string name;  // as the user wrote it; empty: as it calls itself
  ranks::LineStream stream;
  int unanswered = 0;        // requests
  std::string failure = {};  // "has ended"; empty: it answers
};

// Pairs of hosts for each round, which can work at the same time. Every host is in a pair, and all
// are connected through pairs, after about log2(hosts) rounds.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of(std::size_t hosts);

// Joins the results of the two ends of a pair. `early` is of the end that answered first: if both
// have failed, its failure is the cause of the other.
ProbedPair joined(ProbedPair pair, const ProbeResult& early, const ProbeResult& late);

struct SurveyOptions {
  double seconds = 1;  // watch the counters so long
  // Reports what is done now; from any thread.
  std::function<void(std::string)> progress = [](const std::string&) {};
};

// Two hosts: every rail of one with every rail of the other. More: rails of the same position.
// Ends the doctors of all hosts.
Outcome<Survey> survey_hosts(std::vector<Peer> peers, const SurveyOptions& options);

}  // namespace beeline::doctor
