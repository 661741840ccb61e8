// SPDX-License-Identifier: Apache-2.0
// Every mistake is reported, because a test with a misspelled fault would test nothing.
#include "softnic/gpu/settings.h"

#include <array>
#include <charconv>

#include "softnic/gpu/calls.h"
#include "softnic/gpu/cuda_abi.h"
#include "softnic/gpu/errors.h"
#include "softnic/gpu/pages.h"

namespace softnic::gpu {
namespace {

using beeline::fail;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <class Number>
beeline::Outcome<Number> number(std::string_view key, std::string_view text, Number least,
                                Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    return fail(std::string(key) + "=" + std::string(text) + ": expected a number from " +
                std::to_string(least) + " to " + std::to_string(most));
  return value;
}

beeline::Outcome<bool> yes_or_no(std::string_view key, std::string_view text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  return fail(std::string(key) + "=" + std::string(text) + ": expected yes or no");
}

struct Word {
  std::string_view word;
  int value;
};

template <std::size_t N>
beeline::Outcome<int> one_of(std::string_view key, std::string_view text,
                             const std::array<Word, N>& words) {
  std::string known;
  for (const Word& word : words) {
    if (word.word == text) return word.value;
    known += (known.empty() ? "" : ", ") + std::string(word.word);
  }
  return fail(std::string(key) + "=" + std::string(text) + ": expected one of " + known);
}

// Parses "256M", with powers of 1024.
beeline::Outcome<std::uint64_t> bytes(std::string_view key, std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit != kUnits.npos) {
    const unsigned shift = 10 * (static_cast<unsigned>(unit) + 1);
    const std::uint64_t most = (std::uint64_t{1} << 46) >> shift;
    const auto count = number<std::uint64_t>(key, text.substr(0, text.size() - 1), 1, most);
    if (count) return *count << shift;
  }
  return fail(std::string(key) + "=" + std::string(text) + ": expected a size such as 256M or 16G");
}

// Parses "9.0".
beeline::Outcome<int> capability(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == text.npos)
    return fail("compute=" + std::string(text) + ": expected two numbers such as 9.0");
  const int major = BL_TRY(number("compute", text.substr(0, dot), 1, 99));
  return major * 10 + BL_TRY(number("compute", text.substr(dot + 1), 0, 9));
}

beeline::Outcome<std::string> call_name(std::string_view key, std::string_view name) {
  if (is_call(name)) return std::string(name);
  return fail(std::string(key) + ": unknown call " + quoted(name) +
              "; the names are those of cuda.h, without _v2");
}

// Parses "cuMemAlloc@3:2".
beeline::Outcome<void> read_failure(std::string_view text, Settings& settings) {
  const std::size_t at = text.find('@');
  const std::size_t colon = text.find(':');
  if (at == text.npos || colon == text.npos || colon < at)
    return fail("fail=" + std::string(text) + ": expected CALL@N:CUresult, such as cuMemAlloc@1:2");
  const std::string name = BL_TRY(call_name("fail", text.substr(0, at)));
  const std::uint64_t turn =
      BL_TRY(number<std::uint64_t>("fail", text.substr(at + 1, colon - at - 1), 1, UINT64_MAX));
  const int result = BL_TRY(number("fail", text.substr(colon + 1), 1, 999));
  if (error_name(result) == nullptr)
    return fail("fail=" + std::string(text) + ": " + std::to_string(result) + " is not a CUresult");
  settings.failures[name][turn] = result;
  return {};
}

constexpr std::array kFlushWords{Word{"none", 0}, Word{"host", kFlushOptionHost},
                                 Word{"memops", kFlushOptionMemops},
                                 Word{"both", kFlushOptionHost | kFlushOptionMemops}};
constexpr std::array kNicWords{Word{"maps", 1}, Word{"copies", 0}};
constexpr std::array kOrderingWords{Word{"none", kOrderingNone}, Word{"owner", kOrderingOwner},
                                    Word{"all", kOrderingAllDevices}};

beeline::Outcome<void> read_one(std::string_view key, std::string_view text, Settings& settings) {
  if (key == "driver")
    settings.driver = BL_TRY(number(key, text, 2000, 99990));
  else if (key == "compute")
    settings.compute = BL_TRY(capability(text));
  else if (key == "gpus")
    settings.gpus = BL_TRY(number(key, text, 0, kMaxGpus));
  else if (key == "memory")
    settings.memory = BL_TRY(bytes(key, text));
  else if (key == "bar1")
    settings.bar1 = BL_TRY(bytes(key, text));
  else if (key == "packed")
    settings.packed = BL_TRY(yes_or_no(key, text));
  else if (key == "dmabuf")
    settings.dmabuf = BL_TRY(yes_or_no(key, text));
  else if (key == "peermem")
    settings.peermem = BL_TRY(yes_or_no(key, text));
  else if (key == "gdr")
    settings.gdr = BL_TRY(yes_or_no(key, text));
  else if (key == "nic")
    settings.mappable = BL_TRY(one_of(key, text, kNicWords)) != 0;
  else if (key == "queues")
    settings.queues = BL_TRY(number(key, text, 1, 128));
  else if (key == "coherent")
    settings.coherent = BL_TRY(yes_or_no(key, text));
  else if (key == "flush")
    settings.flush = BL_TRY(one_of(key, text, kFlushWords));
  else if (key == "ordering")
    settings.ordering = BL_TRY(one_of(key, text, kOrderingWords));
  else if (key == "missing")
    settings.missing.insert(BL_TRY(call_name(key, text)));
  else if (key == "fail")
    return read_failure(text, settings);
  else
    return fail("unknown setting " + quoted(key));
  return {};
}

}  // namespace

beeline::Outcome<Settings> Settings::parse(std::string_view text) {
  Settings settings;
  std::set<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == item.npos) return fail(quoted(item) + ": expected key=value");
    const std::string_view key = item.substr(0, equals);
    if (key != "missing" && key != "fail" && !seen.insert(key).second)
      return fail(quoted(key) + " is set twice");
    BL_TRY(read_one(key, item.substr(equals + 1), settings));
  }
  return settings;
}

}  // namespace softnic::gpu
