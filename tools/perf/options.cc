// SPDX-License-Identifier: Apache-2.0
//
// Parses the values of options.
#include "tools/perf/options.h"

#include <fmt/format.h>

#include <charconv>

#include "tools/nccl/table.h"

namespace beeline::perf {
namespace {

int shift_of(char suffix) {
  switch (suffix) {
    case 'k':
    case 'K': return 10;
    case 'm':
    case 'M': return 20;
    case 'g':
    case 'G': return 30;
    default: return -1;
  }
}

Outcome<int> parse_int(const std::string& text, const std::string& what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(fmt::format("\"{}\" is not a {}: write a number", text, what));
  }
  return value;
}

constexpr size_t kDouble = 2;

void add_steps(size_t low, size_t high, size_t factor, std::vector<size_t>* sizes) {
  for (size_t size = low; size <= high; size = size == 0 ? 1 : factor * size) {
    sizes->push_back(size);
  }
}

Outcome<bool> add_range(const std::string& item, size_t dots, std::vector<size_t>* sizes) {
  const size_t low = BL_TRY(parse_size(item.substr(0, dots)));
  const size_t high = BL_TRY(parse_size(item.substr(dots + 2)));
  if (low > high)
    return fail(fmt::format("the range {} is reversed: write the smaller number first", item));
  add_steps(low, high, kDouble, sizes);
  return true;
}

}  // namespace

const char* to_string(MemoryChoice choice) {
  switch (choice) {
    case MemoryChoice::kHost: return "host";
    case MemoryChoice::kPeermem: return "peermem";
    case MemoryChoice::kDmabuf: return "dmabuf";
    case MemoryChoice::kMixed: return "mixed";
  }
  return "";
}

const char* to_string(FlushChoice choice) {
  switch (choice) {
    case FlushChoice::kAuto: return "auto";
    case FlushChoice::kAlways: return "always";
    case FlushChoice::kNever: return "never";
  }
  return "";
}

double seconds_of(const Options& options) { return options.seconds.value_or(0.4); }

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at = 0; (at = text.find(separator, from)) != std::string::npos; from = at + 1) {
    parts.push_back(text.substr(from, at - from));
  }
  parts.push_back(text.substr(from));
  return parts;
}

Outcome<size_t> parse_size(const std::string& text) {
  size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const int shift = rest == end ? 0 : rest + 1 == end ? shift_of(*rest) : -1;
  if (error != std::errc() || shift < 0) {
    return fail(fmt::format("\"{}\" is not a size: write 4096, 4K, 1M or 1G", text));
  }
  const size_t limit = NCCL_MAX_NET_SIZE;
  if (value > (limit >> shift)) return fail(fmt::format("the size {} is above 1G", text));
  return value << shift;
}

Outcome<std::vector<size_t>> parse_sizes(const std::string& text) {
  std::vector<size_t> sizes;
  for (const std::string& item : split(text, ',')) {
    const size_t dots = item.find("..");
    if (dots != std::string::npos) {
      BL_TRY(add_range(item, dots, &sizes));
    } else {
      sizes.push_back(BL_TRY(parse_size(item)));
    }
  }
  return sizes;
}

Outcome<std::vector<size_t>> parse_steps(const std::string& begin, const std::string& end,
                                         std::optional<int> factor) {
  constexpr int kMostFactor = 1024;
  if (begin.empty()) return fail("-e and -f: also name the smallest size with -b");
  if (factor && end.empty())
    return fail(fmt::format("-f {}: also name the largest size with -e", *factor));
  if (factor && (*factor < 2 || *factor > kMostFactor)) {
    return fail(fmt::format("-f {}: write 2 to {}; --sizes 1M,3M,5M lists other sizes", *factor,
                            kMostFactor));
  }
  const size_t low = BL_TRY(parse_size(begin));
  const size_t high = end.empty() ? low : BL_TRY(parse_size(end));
  if (low > high) return fail(fmt::format("-b {} is more than -e {}", begin, end));
  std::vector<size_t> sizes;
  add_steps(low, high, factor ? static_cast<size_t>(*factor) : kDouble, &sizes);
  return sizes;
}

Outcome<DeviceSpec> parse_devices(const std::string& text) {
  DeviceSpec groups;
  for (const std::string& group : split(text, '/')) {
    groups.push_back(split(group, ','));
    for (const std::string& device : groups.back()) {
      if (device.empty()) {
        return fail(fmt::format("--dev {}: an entry is empty; write a1,b1/a2,b2", text));
      }
    }
  }
  return groups;
}

Outcome<RankVariable> parse_variable(const std::string& text) {
  const size_t equals = text.find('=');
  const size_t colon = text.find(':');
  const bool for_one = colon != std::string::npos && equals != std::string::npos && colon < equals;
  const size_t name = for_one ? colon + 1 : 0;
  if (equals == std::string::npos || equals == name) {
    return fail(fmt::format("--env {}: write NAME=VALUE, or RANK:NAME=VALUE", text));
  }
  RankVariable variable;
  if (for_one) {
    const Outcome<int> rank = parse_int(text.substr(0, colon), "rank");
    if (!rank) return fail(fmt::format("--env {}: {}", text, rank.error().text));
    if (*rank < 0) return fail(fmt::format("--env {}: the first rank is 0", text));
    variable.rank = *rank;
  }
  variable.name = text.substr(name, equals - name);
  variable.value = text.substr(equals + 1);
  return variable;
}

Outcome<int> parse_abi(const std::string& text) {
  const int abi = BL_TRY(parse_int(text.starts_with('v') ? text.substr(1) : text, "version"));
  if (abi < nccl::kOldestAbi || abi > nccl::kNewestAbi) {
    return fail(fmt::format("unknown version {}: there are v{} to v{}", text, nccl::kOldestAbi,
                            nccl::kNewestAbi));
  }
  return abi;
}

Outcome<MemoryChoice> parse_memory(const std::string& text) {
  for (const auto choice :
       {MemoryChoice::kHost, MemoryChoice::kPeermem, MemoryChoice::kDmabuf, MemoryChoice::kMixed}) {
    if (text == to_string(choice)) return choice;
  }
  return fail(fmt::format("--memory {}: write host, peermem, dmabuf or mixed", text));
}

Outcome<FlushChoice> parse_flush(const std::string& text) {
  for (const auto choice : {FlushChoice::kAuto, FlushChoice::kAlways, FlushChoice::kNever}) {
    if (text == to_string(choice)) return choice;
  }
  return fail(fmt::format("--flush {}: write auto, always or never", text));
}

}  // namespace beeline::perf
