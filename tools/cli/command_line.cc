// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/help_format.h"
#include "tools/cli/describe.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/text_width.h"
#include "tools/cli/unknown_word.h"

namespace beeline::tools {
namespace {

// Refuses what CLI11 would not convert, and says what a number looks like. CLI11 would also accept
// -1 as the largest unsigned number.
template <class Number>
CLI::Validator is_number() {
  const auto check = [](const std::string& text) -> std::string {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end) return "";
    if constexpr (std::is_floating_point_v<Number>) {
      return fmt::format("\"{}\" is not a number; write it without a unit, such as 5 or 0.5", text);
    }
    if constexpr (std::is_signed_v<Number>)
      return fmt::format("\"{}\" is not a whole number", text);
    return fmt::format("\"{}\" is not a whole number from 0 to {}", text,
                       std::numeric_limits<Number>::max());
  };
  return {check, ""};
}

// The visible ones.
std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_option(const CLI::App& command, const std::string& argument) {
  const std::string option = argument.substr(0, argument.find('='));
  const std::vector<std::string> names = names_of_options(command);
  const std::string meant = did_you_mean(option, {names.begin(), names.end()});
  return fmt::format("{} has no option {}{}", command.get_name(), option,
                     meant.empty()
                         ? fmt::format("; beeline {} --help lists its options", command.get_name())
                         : meant);
}

// The command line has words that no option and no positional argument took.
std::string too_much(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining();
  if (words.empty())
    return fmt::format("options come after the subcommand: beeline {} OPTIONS", command.get_name());
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  const auto option = std::ranges::find_if(words, is_option);
  if (option != words.end()) return unknown_option(command, *option);
  return fmt::format("\"{}\" is one word too many; beeline {} --help shows what it takes",
                     words.front(), command.get_name());
}

CLI::Option* set_value_word(CLI::Option& option, const char* word) {
  return word == nullptr ? &option : option.type_name(word);
}

// Shows a manual page on a terminal. Where man is missing, or another than that of man-db, the
// source of the page is printed, as it is into a pipe or a file.
void show_page(const std::string& page) {
  constexpr const char* kShow =
      "page=$(cat); printf '%s\\n' \"$page\" | man -l - 2>/dev/null || printf '%s\\n' \"$page\"";
  std::FILE* const man = ::isatty(STDOUT_FILENO) == 1 ? ::popen(kShow, "w") : nullptr;
  fmt::print(man == nullptr ? stdout : man, "{}", page);
  if (man != nullptr) ::pclose(man);
}

}  // namespace

CLI::Option& Subcommand::place(CLI::Option* option) const {
  if (group_ != nullptr) option->group(group_);
  return *option;
}

void Subcommand::add(const char* name, std::string& value, const char* help,
                     const char* value_word) {
  set_value_word(place(app_.add_option(name, value, help)), value_word);
}

void Subcommand::add(const char* name, int& value, const char* help, const char* value_word) {
  set_value_word(place(app_.add_option(name, value, help)), value_word)->check(is_number<int>());
}

void Subcommand::add(const char* name, std::uint64_t& value, const char* help) {
  place(app_.add_option(name, value, help)).check(is_number<std::uint64_t>());
}

void Subcommand::add(const char* name, double& value, const char* help) {
  place(app_.add_option(name, value, help)).check(is_number<double>());
}

void Subcommand::add(const char* name, std::optional<double>& value, const char* help) {
  place(app_.add_option(name, value, help)).check(is_number<double>());
}

void Subcommand::add(const char* name, std::optional<int>& value, const char* help) {
  place(app_.add_option(name, value, help)).check(is_number<int>());
}

void Subcommand::add(const char* name, std::optional<std::uint64_t>& value, const char* help) {
  place(app_.add_option(name, value, help)).check(is_number<std::uint64_t>());
}

void Subcommand::add_each(const char* name, std::vector<std::string>& values, const char* help,
                          const char* value_word) {
  set_value_word(place(app_.add_option(name, values, help)), value_word)
      ->take_all()
      ->allow_extra_args(false);  // or a positional argument after it would be taken for a value
}

void Subcommand::add_rest(const char* name, std::vector<std::string>& values, const char* help,
                          const char* value_word) {
  set_value_word(place(app_.add_option(name, values, help)), value_word)->take_all();
}

void Subcommand::add_list(const char* name, std::vector<std::string>& values, const char* help,
                          const char* value_words) {
  constexpr int kMost = 100'000;
  set_value_word(place(app_.add_option(name, values, help)), value_words)->expected(2, kMost);
}

void Subcommand::add_pair(const char* name, std::vector<std::string>& values, const char* help,
                          const char* value_words) {
  set_value_word(place(app_.add_option(name, values, help)), value_words)->expected(2);
}

void Subcommand::add_flag(const char* name, bool& value, const char* help) {
  place(app_.add_flag(name, value, help));
}

void Subcommand::add_pages_folder(std::string& value) {
  add("--dir", value,
      "The directory of the statistics pages (default: BEELINE_STATS_DIR, or /dev/shm)", "FOLDER");
}

void Subcommand::refuse(const char* name, const char* instead) {
  app_.add_option_function<std::string>(
          name, [name, instead](const std::string&) { throw CLI::ValidationError(name, instead); })
      ->group("");
}

void Subcommand::set_footer(std::string text) { app_.footer(std::move(text)); }

CommandLine::CommandLine(const char* name, const char* summary, const std::string& version)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->set_version_flag("--version", fitted(version, output_width()),
                         "Print the version and exit");
  app_->require_subcommand(1);
  app_->formatter(std::make_shared<HelpFormat>());  // of the subcommands, too
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add(const char* name, const char* summary, std::function<int()> run) {
  CLI::App* const app = app_->add_subcommand(name, summary);
  commands_.push_back({name, std::move(run)});
  return Subcommand(*app);
}

void CommandLine::add_descriptions(const std::string& version) {
  const auto shell = std::make_shared<std::string>();
  add("completion", "Print a script that completes commands and options in a shell", [this, shell] {
    if (*shell != "bash" && *shell != "zsh")
      return print_error(Problem("name a shell: bash or zsh"), kUsage);
    fmt::print("{}", *shell == "bash" ? bash_completion(*app_, offered_)
                                      : zsh_completion(*app_, offered_));
    return 0;
  }).add("shell", *shell, "bash or zsh");
  offer("completion", {"bash", "zsh"});
  const auto page = std::make_shared<std::string>();
  const auto show = [this, page, version] {
    const std::vector<CLI::App*> named =
        app_->get_subcommands([&](const CLI::App* one) { return one->get_name() == *page; });
    if (named.empty() && !page->empty()) return print_error(Problem(no_subcommand(*page)), kUsage);
    show_page(man_page(*app_, page->empty() ? *app_ : *named.front(), version));
    return 0;
  };
  Subcommand man = add("man", "Show the manual page of a subcommand, or that of beeline", show);
  man.add("subcommand", *page, "Which one");
  man.set_footer(
      "Into a pipe or a file, it prints the source of the page, which man -l shows. It does so on "
      "a terminal as well if man is not installed.");
  for (const Command& command : commands_) offered_["man"].emplace_back(command.name);
}

int CommandLine::run(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& asked) {  // for the help or the version
    return app_->exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> named = app_->get_subcommands();
    if (named.empty()) return print_error(no_subcommand(argc > 1 ? argv[1] : ""), kUsage);
    const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    return print_error(is_extra ? too_much(*named.front())
                                : fmt::format("{}; see beeline {} --help", error.what(),
                                              named.front()->get_name()),
                       kUsage);
  }
  for (const Command& command : commands_) {
    if (app_->got_subcommand(command.name)) return command.run();
  }
  return kUsage;  // not reached: one is required
}

std::string CommandLine::no_subcommand(std::string_view word) const {
  std::vector<std::string_view> known;
  for (const Command& command : commands_) known.emplace_back(command.name);
  const std::string wrong = word.empty() || word.starts_with('-')
                                ? fmt::format("name a subcommand: {}", fmt::join(known, ", "))
                                : unknown_word(word, "subcommand", known);
  return wrong + "; beeline --help describes them";
}

}  // namespace beeline::tools
