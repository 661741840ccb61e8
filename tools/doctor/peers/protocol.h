// SPDX-License-Identifier: Apache-2.0
//
// The requests of the doctor that the user started to the doctors on all hosts, and their answers.
// Each message is a line. A host answers one request at a time; a request to stop has no answer.
// A request names no variable, file or library: whoever starts a doctor sets its environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/exit_status.h"
#include "tools/doctor/compare.h"

namespace beeline::doctor {

enum class Ask : std::uint8_t {
  kExamine,  // check the host
  kOpen,     // load the plugin
  kListen,   // wait for a connection on a rail
  kProbe,    // connect to the other host on that rail, in both directions, and measure
  kStop,     // end the probe: the other host's has failed
  kEnd,
};

struct Request {
  Ask ask = Ask::kEnd;
  double seconds = 0;          // kExamine: watch the counters so long
  std::size_t rail = 0;        // kListen
  bool in_gpu_memory = false;  // kListen
  bool is_first = false;       // kProbe: this end sends first
  std::string handle = {};     // kProbe: of the other host
};

struct Rail {
  std::string name = {};
  int mbps = 0;
};

struct RailsOfHost {
  std::string plugin = {};  // its name, and the file that it is from
  std::vector<Rail> rails = {};
  bool has_gpu = false;
};

// The result of one end.
struct ProbeResult {
  std::string failure = {};  // empty: none
  bool is_wrong = false;     // the failure is that the data was not the data sent
  double round_trip_us = 0;  // the least
  double gbytes_per_s = 0;   // that this end has sent
};

std::string encode(const Request& request);
std::string encode(const Examined& examined);
std::string encode(const RailsOfHost& rails);
std::string encode(const ProbeResult& result);
// A host that cannot do what it is asked says why.
std::string encode_refusal(const std::string& why);
// Any text, such as a handle.
std::string encode_text(const std::string& text);

Outcome<Request> decode_request(const std::string& line);
Outcome<Examined> decode_examined(const std::string& line);
Outcome<RailsOfHost> decode_rails(const std::string& line);
Outcome<ProbeResult> decode_result(const std::string& line);
Outcome<std::string> decode_text(const std::string& line);

}  // namespace beeline::doctor
