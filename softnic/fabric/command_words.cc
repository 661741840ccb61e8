// SPDX-License-Identifier: Apache-2.0
// Parses commands. One table lists all of them; it is also used to suggest a command for a mistyped
// one.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "softnic/fabric/event_names.h"
#include "softnic/fabric/port_command.h"
#include "softnic/spec/gid_words.h"
#include "softnic/spec/names.h"
#include "softnic/spec/units.h"
#include "softnic/spec/wc_status.h"

namespace softnic {
namespace {

using beeline::fail;
using Kind = PortCommand::Kind;
using Parse = beeline::Outcome<PortCommand> (*)(Kind kind, const std::string& value);

beeline::Outcome<PortCommand> parse_nothing(Kind kind, const std::string&) {
  return PortCommand{.kind = kind};
}

template <auto kParse>
beeline::Outcome<PortCommand> parse_value(Kind kind, const std::string& value) {
  return PortCommand{.kind = kind, .value = BL_TRY(kParse(value))};
}

// 0: it is no positive number.
std::uint64_t positive_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end ? number : 0;
}

beeline::Outcome<std::uint64_t> parse_count(const std::string& text) {
  if (const std::uint64_t count = positive_number(text); count != 0) return count;
  return fail(fmt::format(
      "\"{}\" is not a count: after @ comes 1 for the next work request, 2 for the one after it",
      text));
}

beeline::Outcome<std::uint64_t> parse_pause(const std::string& text) {
  const std::uint64_t ns = BL_TRY(parse_duration_ns(text));
  if (ns == 0) return fail(std::string("a pause of 0 has no effect; use resume to end a pause"));
  return ns;
}

beeline::Outcome<std::uint64_t> parse_pkey(const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  std::uint16_t pkey = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + (hex ? 2 : 0), end, pkey, hex ? 16 : 10);
  if (error != std::errc{} || rest != end || (pkey & 0x7fff) == 0)
    return fail(
        fmt::format("\"{}\" is not a P_Key: write 16 bits such as 0x8001, of which the "
                    "lower 15 are not all 0",
                    text));
  return std::uint64_t{pkey};
}

beeline::Outcome<std::uint64_t> parse_lid(const std::string& text) {
  const std::uint64_t lid = positive_number(text);
  if (lid != 0 && lid <= kMaxUnicastLid) return lid;
  return fail(
      fmt::format("\"{}\" is not a LID: write a number from 1 to {}", text, kMaxUnicastLid));
}

beeline::Outcome<std::uint64_t> parse_switch(const std::string& text) {
  if (text == "on") return std::uint64_t{1};
  if (text == "off") return std::uint64_t{0};
  return fail(fmt::format("\"{}\" is neither on nor off", text));
}

beeline::Outcome<PortCommand> parse_error(Kind kind, const std::string& value) {
  const std::size_t at = value.find('@');
  if (at == std::string::npos)
    return fail(
        fmt::format("\"error={}\" lacks @N: write for example error=retry_exc_err@1", value));
  PortCommand command{.kind = kind};
  command.status = BL_TRY(parse_wc_status(value.substr(0, at)));
  command.value = BL_TRY(parse_count(value.substr(at + 1)));
  return command;
}

// "64@1"
beeline::Outcome<std::uint64_t> parse_bytes_or_none(const std::string& text) {
  const std::uint64_t bytes = positive_number(text);
  if (bytes == 0 && text != "0") return fail(fmt::format("\"{}\" is not a number of bytes", text));
  return bytes;
}

beeline::Outcome<PortCommand> parse_discard(Kind kind, const std::string& value) {
  const std::size_t at = value.find('@');
  if (at == std::string::npos)
    return fail(fmt::format("\"discard={}\" lacks @N: write for example discard=64@1", value));
  PortCommand command{.kind = kind};
  command.bytes = positive_number(value.substr(0, at));
  if (command.bytes == 0)
    return fail(
        fmt::format("\"{}\" is not a length: before @ come the bytes of the longest message "
                    "that counts",
                    value.substr(0, at)));
  command.value = BL_TRY(parse_count(value.substr(at + 1)));
  return command;
}

beeline::Outcome<PortCommand> parse_event(Kind kind, const std::string& value) {
  PortCommand command{.kind = kind};
  command.status = BL_TRY(parse_event_name(value));
  return command;
}

// "3:fe80::1", "3:fe80::1/rocev2", "3:none".
beeline::Outcome<PortCommand> parse_gid_change(Kind kind, const std::string& value) {
  const std::size_t colon = value.find(':');
  std::uint32_t index = 0;
  const char* const end = value.data() + std::min(colon, value.size());
  const auto [rest, error] = std::from_chars(value.data(), end, index);
  if (colon == std::string::npos || error != std::errc{} || rest != end)
    return fail(fmt::format(
        "\"gid={}\" lacks the index: write for example gid=3:fe80::1 or gid=3:none", value));
  PortCommand command{.kind = kind, .value = index};
  const std::string entry = value.substr(colon + 1);
  if (entry == "none") return command;
  const std::size_t slash = entry.find('/');
  command.gid = BL_TRY(parse_gid(entry.substr(0, slash)));
  if (*command.gid == GidSpec{}.raw)
    return fail(fmt::format("all zero stands for an empty entry: write gid={}:none", index));
  if (slash != std::string::npos)
    command.gid_kind = BL_TRY(parse_gid_kind(entry.substr(slash + 1)));
  return command;
}

struct Word {
  const char* word;  // with the '=' or '@' that a value follows
  const char* form;  // how its value is written
  Kind kind;
  Parse parse;
};

constexpr Word kWords[] = {
    {"down", "", Kind::kDown, parse_nothing},
    {"up", "", Kind::kUp, parse_nothing},
    {"rate=", "RATE", Kind::kRate, parse_value<parse_rate>},
    {"latency=", "TIME", Kind::kLatency, parse_value<parse_duration_ns>},
    {"jitter=", "TIME", Kind::kJitter, parse_value<parse_duration_ns>},
    {"loss=", "SHARE", Kind::kLoss, parse_value<parse_share_ppm>},
    {"loss-sent=", "SHARE", Kind::kSentLoss, parse_value<parse_share_ppm>},
    {"loss-over=", "BYTES", Kind::kLossOver, parse_value<parse_bytes_or_none>},
    {"blackhole", "", Kind::kBlackHole, parse_nothing},
    {"pause", "", Kind::kPause, parse_nothing},
    {"pause=", "TIME", Kind::kPause, parse_value<parse_pause>},
    {"resume", "", Kind::kResume, parse_nothing},
    {"error=", "STATUS@N", Kind::kError, parse_error},
    {"corrupt@", "N", Kind::kCorrupt, parse_value<parse_count>},
    {"discard=", "BYTES@N", Kind::kDiscard, parse_discard},
    {"gid=", "INDEX:ADDRESS", Kind::kGid, parse_gid_change},
    {"pkey=", "PKEY", Kind::kPkey, parse_value<parse_pkey>},
    {"lid=", "LID", Kind::kLid, parse_value<parse_lid>},
    {"event=", "NAME", Kind::kEvent, parse_event},
    {"reset", "", Kind::kReset, parse_nothing},
    {"remove", "", Kind::kRemove, parse_nothing},
    {"return", "", Kind::kReturn, parse_nothing},
    {"refuse-err=", "on|off", Kind::kRefuseErr, parse_value<parse_switch>},
    {"refuse-gpu=", "on|off", Kind::kRefuseGpu, parse_value<parse_switch>},
    {"hide-events=", "on|off", Kind::kHideEvents, parse_value<parse_switch>},
    {"command=", "TIME", Kind::kCommandTime, parse_value<parse_duration_ns>},
};

std::string bare(const std::string& text) { return text.substr(0, text.find_first_of("=@")); }

bool has_argument(const Word& word) { return *word.form != '\0'; }

// The error for a command that is unknown, lacks its argument, or has one that it does not take.
std::string unknown_command(const std::string& text) {
  std::vector<std::string> words;
  std::vector<std::string> spellings;
  for (const Word& word : kWords) {
    words.push_back(bare(word.word));
    spellings.push_back(std::string(word.word) + word.form);
  }
  const std::string meant = nearest_name(bare(text), words);
  const auto known = std::find(words.begin(), words.end(), meant);
  if (known != words.end())
    return fmt::format("unknown command \"{}\"; did you mean {}?", text,
                       spellings[static_cast<std::size_t>(known - words.begin())]);
  return fmt::format("unknown command \"{}\"; the commands are {}", text, list_text(spellings));
}

}  // namespace

bool is_for_device(PortCommand::Kind kind) { return kind >= Kind::kRemove; }

beeline::Outcome<PortCommand> parse_port_command(const std::string& text) {
  for (const Word& word : kWords) {
    if (!has_argument(word) && text == word.word) return word.parse(word.kind, "");
    if (has_argument(word) && text.starts_with(word.word))
      return word.parse(word.kind, text.substr(std::string_view(word.word).size()));
  }
  return fail(unknown_command(text));
}

}  // namespace softnic
