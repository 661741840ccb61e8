// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <string>
#include <utility>

#include "tools/cli/exit_status.h"

namespace beeline::tools {
namespace {

CLI::Option* set_value_word(CLI::Option& option, const char* word) {
  return word == nullptr ? &option : option.type_name(word);
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
  set_value_word(place(app_.add_option(name, value, help)), value_word);
}

void Subcommand::add(const char* name, std::uint64_t& value, const char* help) {
  // CLI11 would accept -1 as the largest number.
  const auto is_whole = [](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end) return "";
    return "\"" + text + "\" is not a whole number from 0 to 18446744073709551615";
  };
  place(app_.add_option(name, value, help)).check(CLI::Validator(is_whole, ""));
}

void Subcommand::add(const char* name, double& value, const char* help) {
  place(app_.add_option(name, value, help));
}

void Subcommand::add(const char* name, std::optional<double>& value, const char* help) {
  place(app_.add_option(name, value, help));
}

void Subcommand::add(const char* name, std::optional<int>& value, const char* help) {
  place(app_.add_option(name, value, help));
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

void Subcommand::set_footer(std::string text) { app_.footer(std::move(text)); }

CommandLine::CommandLine(const char* name, const char* summary, const std::string& version)
    : app_(std::make_unique<CLI::App>(summary, name)) {
  app_->set_version_flag("--version", version, "Print the version and exit");
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::add(const char* name, const char* summary, std::function<int()> run) {
  CLI::App* const app = app_->add_subcommand(name, summary);
  commands_.push_back({name, std::move(run)});
  return Subcommand(*app);
}

int CommandLine::run(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : kUsage;
  }
  for (const Command& command : commands_) {
    if (app_->got_subcommand(command.name)) return command.run();
  }
  return kUsage;  // not reached: one is required
}

}  // namespace beeline::tools
