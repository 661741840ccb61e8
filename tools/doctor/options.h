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
  bool list = false;                      // everything that can be found, instead of a host
};

}  // namespace beeline::doctor
