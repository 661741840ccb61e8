// SPDX-License-Identifier: Apache-2.0
//
// Replaces the addresses of a network by others that stand in the same relations, so that a record
// can be shown to strangers and still be examined: equal addresses stay equal, addresses of one
// subnet stay in one, link-local ones stay link-local.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace beeline::doctor {

class ReplacedAddresses {
 public:
  // Hardware addresses ("02:00:0a:00:00:01"), GIDs, IPv4 and IPv6 addresses anywhere in a text, and
  // the user's name in the path of a home folder.
  std::string in_text(const std::string& text);
  // /proc/net/route has IPv4 addresses as eight hexadecimal digits.
  std::string in_routes(const std::string& text);

 private:
  std::string mac(const std::string& address);
  std::string gid(const std::string& address);
  std::string ipv4(const std::string& address);
  // The number of the text among all of its kind: the first is 1.
  std::size_t number(const char* kind, const std::string& text);

  std::map<std::string, std::map<std::string, std::size_t>> numbers_;  // by kind
  std::map<std::string, std::string> macs_;                            // without colons
};

}  // namespace beeline::doctor
