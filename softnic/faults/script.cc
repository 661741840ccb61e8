// SPDX-License-Identifier: Apache-2.0
#include "softnic/faults/script.h"

#include <fmt/format.h>

#include <sstream>

#include "softnic/spec/units.h"

namespace softnic {
namespace {

using beeline::fail;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream rest(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; rest >> word;) words.push_back(word);
  return words;
}

bool is_time(const std::string& word) { return word.starts_with('+') || word.starts_with('@'); }

class ScriptReader {
 public:
  ScriptReader(const Fabric& fabric, const std::string& file_name)
      : fabric_(fabric), file_name_(file_name) {}

  void read_line(std::uint32_t number, const std::string& line) {
    std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    if (is_time(words.front())) {
      set_time(number, words.front());
      words.erase(words.begin());
    }
    if (words.size() < 2) {
      return add_error(number, "expected [TIME] [HOST/]DEVICE[:PORT] COMMAND...");
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      const beeline::Outcome<TargetedCommand> command =
          read_targeted_command(fabric_, words[0], words[i]);
      if (!command) {
        add_error(number, command.error().text);
      } else {
        commands_.push_back({now_ns_, *command});
      }
    }
  }

  beeline::Outcome<std::vector<TimedCommand>> result() && {
    if (!errors_.empty()) return fail(std::move(errors_));
    return std::move(commands_);
  }

 private:
  void set_time(std::uint32_t number, const std::string& word) {
    const auto ns = parse_long_duration_ns(word.substr(1));
    if (!ns) return add_error(number, ns.error().text);
    const std::uint64_t at = word.front() == '+' ? now_ns_ + *ns : *ns;
    if (at < now_ns_)
      return add_error(number, fmt::format("{} is before the line above, which is at {}", word,
                                           duration_text(now_ns_)));
    now_ns_ = at;
  }

  void add_error(std::uint32_t number, const std::string& reason) {
    errors_ += fmt::format("{}{}:{}: {}", errors_.empty() ? "" : "\n", file_name_, number, reason);
  }

  const Fabric& fabric_;
  const std::string& file_name_;
  std::uint64_t now_ns_ = 0;
  std::vector<TimedCommand> commands_;
  std::string errors_;
};

}  // namespace

beeline::Outcome<std::vector<TimedCommand>> read_script(const Fabric& fabric,
                                                        const std::string& text,
                                                        const std::string& file_name) {
  ScriptReader reader(fabric, file_name);
  std::istringstream lines(text);
  std::uint32_t number = 0;
  for (std::string line; std::getline(lines, line);) reader.read_line(++number, line);
  return std::move(reader).result();
}

std::size_t play(const Fabric& fabric, const std::vector<TimedCommand>& script, const Wait& wait) {
  std::size_t given = 0;
  for (const TimedCommand& next : script) {
    if (!wait(next.at_ns)) break;
    apply(fabric, next.command);
    ++given;
  }
  return given;
}

}  // namespace softnic
