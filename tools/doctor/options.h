// SPDX-License-Identifier: Apache-2.0
//
// The options of `beeline doctor`, after the command line was checked.
#pragma once

#include <string>
#include <vector>

namespace beeline::doctor {

struct Options {
  std::string root = {};        // a folder like /, or a file made by --record; empty: this host
  std::string record = {};      // the file to write; empty: none
  bool with_addresses = false;  // in the record
  double seconds = 1;           // between the two readings of the counters
  bool all = false;             // also what is as it should be
  bool json = false;
  std::vector<std::string> compare = {};  // records of several hosts; empty: one host
  std::vector<std::string> peers = {};    // other hosts to look at, together with this one
  std::string hostfile = {};              // a file that names all hosts to look at
  std::string cluster = {};               // where the ranks of a launcher meet
  std::string launch = {};                // the command that runs another one on a host
  std::string svg = {};                   // the file for the picture of the rails; empty: none
  bool serve = false;                     // this process was started by a doctor on another host
  bool list = false;                      // everything that can be found, instead of a host
};

inline bool looks_at_several_hosts(const Options& options) {
  return !options.peers.empty() || !options.hostfile.empty() || !options.cluster.empty();
}

}  // namespace beeline::doctor
