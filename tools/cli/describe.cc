// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/describe.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace beeline::tools {
namespace {

constexpr std::string_view kExitStatus = "Exit status: ";
// Where the footer says nothing else.
constexpr const char* kUsualStatus =
    "0 success, 1 a failure or wrong data, 2 a mistake in the command line or in what it names,\n"
    "unless an option says otherwise.\n";

std::vector<const CLI::App*> subcommands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

// Those that the help shows, in its order.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// A text as roff takes it. These characters are special there, or would be others in what is copied
// from the page.
std::string roff(const std::string& text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '\\': made += "\\e"; break;
      case '-': made += "\\-"; break;
      case '\'': made += "\\(aq"; break;
      case '`': made += "\\(ga"; break;
      case '^': made += "\\(ha"; break;
      case '~': made += "\\(ti"; break;
      case '.': made += made.empty() ? "\\&." : "."; break;
      default: made += c;
    }
  }
  return made;
}

std::string tagged(const std::string& what, const std::string& about) {
  return fmt::format(".TP\n{}\n{}\n", what, roff(about));
}

std::string bold(const std::string& text) { return ".B " + roff(text); }

// "-h, --help", or "--sizes TEXT" with the name of the value in italics.
std::string names_and_value(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_type_name().empty()) return bold(all);
  return fmt::format(".BI \"{} \" \"{}\"", roff(all), roff(option.get_type_name()));
}

// In the groups of the help. The title of the first one would repeat that of the section.
std::string man_options(const CLI::App& command) {
  std::string text;
  for (const std::string& group : command.get_groups()) {
    std::string entries;
    for (const CLI::Option* const option : options_of(command)) {
      if (option->nonpositional() && option->get_group() == group)
        entries += tagged(names_and_value(*option), option->get_description());
    }
    if (!text.empty() && !entries.empty()) text += fmt::format(".SS {}\n", roff(group));
    text += entries;
  }
  return text;
}

// The indented lines of a footer are a list (Subcommand::set_footer).
std::string man_text(const std::string& footer) {
  std::string text;
  for (const std::string& line : CLI::detail::split(footer, '\n')) {
    const std::string entry = CLI::detail::trim_copy(line);
    const std::size_t gap = entry.find("  ");
    if (line.starts_with(' ') && gap != std::string::npos) {
      text += tagged(bold(entry.substr(0, gap)), entry.substr(entry.find_first_not_of(' ', gap)));
    } else if (!entry.empty()) {
      text += roff(entry) + "\n";
    }
  }
  return text;
}

// In single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string made;
  for (const char c : text) made += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + made + "'";
}

// In the description of zsh's _arguments, which brackets and a colon would end.
std::string zsh_text(std::string text) {
  std::ranges::replace(text, '[', '(');
  std::ranges::replace(text, ']', ')');
  std::string made;
  for (const char c : text) made += c == ':' ? std::string("\\:") : std::string(1, c);
  return made;
}

// An option as zsh's _arguments takes it, with one value, two, or all that follow.
std::string zsh_option(const std::string& name, const CLI::Option& option) {
  const std::string about = "[" + zsh_text(option.get_description()) + "]";
  if (option.get_type_name().empty()) return name + about;
  const std::string value = ":" + zsh_text(option.get_type_name()) + ":_files";
  if (option.get_expected_min() < 2) return name + "=" + about + value;
  return name + about + (option.get_expected_max() == 2 ? value + value : ":*" + value);
}

std::vector<std::string> words_for(const CLI::App& command, const Offered& offered) {
  const auto found = offered.find(command.get_name());
  return found == offered.end() ? std::vector<std::string>() : found->second;
}

bool takes_files(const CLI::App& command) {
  return std::ranges::any_of(options_of(command), [](const CLI::Option* option) {
    return !option->nonpositional() && option->get_type_name() == "FILE";
  });
}

}  // namespace

std::string man_page(const CLI::App& program, const CLI::App& command, const std::string& version) {
  const bool is_program = &program == &command;
  const std::string call = program.get_name() + (is_program ? "" : " " + command.get_name());
  const std::string name = program.get_name() + (is_program ? "" : "-" + command.get_name());
  // Words that are to be copied must not be hyphenated.
  std::string page = fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n.nh\n.ad l\n",
                                 upper(roff(name)), roff(version));
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.get_description()));
  page += fmt::format(".SH SYNOPSIS\n{}\n{}[OPTIONS]", bold(call), is_program ? "SUBCOMMAND " : "");
  std::string arguments;
  for (const CLI::Option* const option : options_of(command)) {
    if (option->nonpositional()) continue;
    const std::string& argument = option->get_name();
    page += fmt::format(" [{}{}]", roff(argument), option->get_expected_max() > 1 ? "..." : "");
    arguments += tagged(bold(argument), option->get_description());
  }
  const std::string footer = command.get_footer();
  const std::size_t about_end = std::min(footer.find(kExitStatus), footer.size());
  page += fmt::format("\n.SH DESCRIPTION\n{}.\n{}", roff(command.get_description()),
                      man_text(footer.substr(0, about_end)));
  if (is_program) {
    page += ".SH SUBCOMMANDS\n";
    for (const CLI::App* const one : subcommands_of(program)) {
      page += tagged(fmt::format(".BR {}\\-{} (1)", roff(name), roff(one->get_name())),
                     one->get_description());
    }
  }
  if (!arguments.empty()) page += ".SH ARGUMENTS\n" + arguments;
  page += ".SH OPTIONS\n" + man_options(command);
  page += ".SH EXIT STATUS\n";
  page += about_end == footer.size() ? kUsualStatus
                                     : man_text(footer.substr(about_end + kExitStatus.size()));
  if (!is_program) page += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(program.get_name()));
  return page;
}

std::string bash_completion(const CLI::App& program, const Offered& offered) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* const command : subcommands_of(program)) {
    names.push_back(command->get_name());
    std::vector<std::string> options;
    std::vector<std::string> valued;
    for (const CLI::Option* const option : options_of(*command)) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
      if (option->get_type_name().empty()) continue;
      for (const std::string& name : option->get_snames()) valued.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) valued.push_back("--" + name);
    }
    cases +=
        fmt::format("    {}) options='{}' valued='{}' words='{}' files={} ;;\n", names.back(),
                    fmt::join(options, " "), fmt::join(valued, " "),
                    fmt::join(words_for(*command, offered), " "), takes_files(*command) ? 1 : 0);
  }
  const std::string& name = program.get_name();
  return fmt::format(
      "# Completion of {0} for bash\n"
      "_{0}() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} i=COMP_CWORD\n"
      "  local options='--help --version' valued='' words='{1}' files=0\n"
      "  ((COMP_CWORD == 1)) || case ${{COMP_WORDS[1]/#help/man}} in\n"
      "{2}"
      "    *) words='' ;;\n"
      "  esac\n"
      "  # The value of the last option may be a file, and must be what follows the option.\n"
      "  while ((--i > 1)) && [[ ${{COMP_WORDS[i]}} != -* ]]; do :; done\n"
      "  if [[ \" $valued \" == *\" ${{COMP_WORDS[i]}} \"* ]]; then\n"
      "    files=1\n"
      "    ((i < COMP_CWORD - 1)) && [[ ${{COMP_WORDS[COMP_CWORD - 1]}} != = ]] || words=''\n"
      "  fi\n"
      "  [[ $current != -* ]] || words=$options\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  ((${{#COMPREPLY[@]}} || !files)) || compopt -o default\n"
      "}}\n"
      "complete -F _{0} {0}\n",
      name, fmt::join(names, " "), cases);
}

std::string zsh_completion(const CLI::App& program, const Offered& offered) {
  std::string commands;
  std::string cases;
  for (const CLI::App* const command : subcommands_of(program)) {
    commands += fmt::format(
        "    {}\n", quoted(command->get_name() + ":" + zsh_text(command->get_description())));
    cases += fmt::format("    {}) _arguments", command->get_name());
    for (const CLI::Option* const option : options_of(*command)) {
      for (const std::string& name : option->get_lnames()) {
        cases += " \\\n      " + quoted(zsh_option("--" + name, *option));
      }
    }
    const std::vector<std::string> words = words_for(*command, offered);
    if (!words.empty()) cases += fmt::format(" \\\n      '1:word:({})'", fmt::join(words, " "));
    if (takes_files(*command)) cases += " \\\n      '*:file:_files'";
    cases += " ;;\n";
  }
  return fmt::format(
      "#compdef {0}\n"
      "# Completion of {0} for zsh\n"
      "local -a commands=(\n{1}  )\n"
      "if ((CURRENT == 2)); then\n"
      "  _describe -t commands {0} commands\n"
      "else\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case ${{words[1]/#help/man}} in\n{2}  esac\n"
      "fi\n",
      program.get_name(), commands, cases);
}

}  // namespace beeline::tools
