// SPDX-License-Identifier: Apache-2.0
//
// Computes rates from two looks at the statistics pages.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/pages/processes.h"

namespace beeline::top {

struct Look {
  std::int64_t at_ns = 0;
  std::vector<pages::Process> processes;
  pages::LeftOut left_out = {};
};

// A NIC port of a process, with all its connections.
struct Rail {
  std::string device;
  std::size_t paths = 0;
  std::size_t out_of_use = 0;            // of them
  std::size_t down = 0;                  // of those: the port of this process has gone down
  std::set<std::string> stand_ins = {};  // ports that carry more paths, in the place of this one
  std::uint64_t failures = 0;            // of its paths, ever, whoever carries them now
  double send = 0;                       // bytes per second
  double receive = 0;
};

struct ConnectionRate {
  SlotView slot;
  double bytes = 0;  // per second
  double messages = 0;
};

struct ProcessRate {
  pages::Process process;  // as of the second look; its connections are below
  std::vector<Rail> rails;
  std::vector<ConnectionRate> connections;
  std::size_t waiting = 0;  // connections
};

// The processes of the second look that have not ended. What is new since the first has no rates.
std::vector<ProcessRate> rates_between(const Look& first, Look second);

}  // namespace beeline::top
