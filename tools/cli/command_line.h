// SPDX-License-Identifier: Apache-2.0
//
// The command line of `beeline`, parsed by CLI11. Only command_line.cc includes CLI11, because a
// source that does takes 20 seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace beeline::tools {

// The options of one subcommand. A variable is set when the command line is parsed, and keeps its
// value if the option is not given. A name is "--long", "--long,--other", or "name" for a
// positional argument. The help shows `value_word` in place of CLI11's TEXT or INT.
class Subcommand {
 public:
  explicit Subcommand(CLI::App& app) : app_(app) {}

  void add(const char* name, std::string& value, const char* help,
           const char* value_word = nullptr);
  void add(const char* name, int& value, const char* help, const char* value_word = nullptr);
  void add(const char* name, std::uint64_t& value, const char* help);
  void add(const char* name, double& value, const char* help);
  // Stays empty if the option is not given.
  void add(const char* name, std::optional<double>& value, const char* help);
  void add(const char* name, std::optional<int>& value, const char* help);
  void add(const char* name, std::optional<std::uint64_t>& value, const char* help);
  // May be given several times, with one value each.
  void add_each(const char* name, std::vector<std::string>& values, const char* help,
                const char* value_word = nullptr);
  // All positional arguments that are left; there may be none.
  void add_rest(const char* name, std::vector<std::string>& values, const char* help,
                const char* value_word = nullptr);
  // An option with two or more values.
  void add_list(const char* name, std::vector<std::string>& values, const char* help,
                const char* value_words = nullptr);
  // An option with two values.
  void add_pair(const char* name, std::vector<std::string>& values, const char* help,
                const char* value_words = nullptr);
  void add_flag(const char* name, bool& value, const char* help);
  // Where the statistics pages are: --dir.
  void add_pages_folder(std::string& value);
  // An option of a similar program, which this one does not have: the error says what to write
  // instead. The names are as those of an option.
  void refuse(const char* name, const char* instead);
  // The help lists the following options under this title.
  void begin_group(const char* title) { group_ = title; }
  // The text after the options in the help. Indented lines are a list: a word, two blanks or more,
  // and what it means. "Exit status: " begins the last sentence.
  void set_footer(std::string text);

 private:
  CLI::Option& place(CLI::Option* option) const;

  CLI::App& app_;
  const char* group_ = nullptr;
};

class CommandLine {
 public:
  CommandLine(const char* name, const char* summary, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `run` returns the exit status. It also owns the variables of the subcommand.
  Subcommand add(const char* name, const char* summary, std::function<int()> run);

  // Completion in a shell offers these words for the positional argument of the subcommand.
  void offer(const char* name, std::vector<std::string> words) {
    offered_[name] = std::move(words);
  }

  // Adds subcommands that describe all of them to other programs: man pages, and completion for
  // shells. `version` is in the man pages.
  void add_descriptions(const std::string& version);

  // Parses and runs the subcommand that the user named. Returns the exit status.
  int run(int argc, const char* const* argv);

 private:
  struct Command {
    const char* name;
    std::function<int()> run;
  };

  // The error for a command line that names no subcommand, and begins with this word.
  std::string no_subcommand(std::string_view word) const;

  std::unique_ptr<CLI::App> app_;
  std::vector<Command> commands_;
  std::map<std::string, std::vector<std::string>> offered_;
};

}  // namespace beeline::tools
