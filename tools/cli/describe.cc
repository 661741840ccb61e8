// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/describe.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

namespace beeline::tools {
namespace {

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

// A text as roff takes it: a backslash, a hyphen that may be copied, and a control character at the
// beginning of a line are special there.
std::string roff(const std::string& text) {
  std::string made;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) made += "\\&";
    if (c == '\\') {
      made += "\\e";
    } else if (c == '-') {
      made += "\\-";
    } else {
      made += c;
    }
    begins_line = c == '\n';
  }
  return made;
}

// "-h, --help", "--sizes TEXT", or "files FILE ..." for a positional argument.
std::string names_of(const CLI::Option& option) {
  const std::string value = option.get_type_name().empty() ? "" : " " + option.get_type_name();
  if (option.nonpositional()) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    return fmt::format("{}{}", fmt::join(names, ", "), value);
  }
  return option.get_name() + value;
}

std::string man_options(const CLI::App& command) {
  std::string text;
  std::string group;
  for (const CLI::Option* const option : options_of(command)) {
    const bool is_new = option->get_group() != group && option->nonpositional();
    if (is_new) {
      group = option->get_group();
      text += fmt::format(".SS {}\n", roff(group));
    }
    text +=
        fmt::format(".TP\n.B {}\n{}\n", roff(names_of(*option)), roff(option->get_description()));
  }
  return text;
}

// Lines that are indented stay as they are.
std::string man_footer(const std::string& footer) {
  std::string text;
  bool is_literal = false;
  for (const std::string& line : CLI::detail::split(footer, '\n')) {
    const bool is_indented = line.starts_with(' ');
    if (is_indented != is_literal) text += is_indented ? ".nf\n" : ".fi\n";
    is_literal = is_indented;
    text += line.empty() ? ".PP\n" : roff(line) + "\n";
  }
  return text + (is_literal ? ".fi\n" : "");
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

}  // namespace

std::string man_page(const CLI::App& program, const CLI::App& command, const std::string& version) {
  const bool is_program = &program == &command;
  const std::string call = program.get_name() + (is_program ? "" : " " + command.get_name());
  const std::string name = program.get_name() + (is_program ? "" : "-" + command.get_name());
  std::string page = fmt::format(".TH {} 1 \"\" {} \"User Commands\"\n", upper(roff(name)),
                                 fmt::format("\"{}\"", roff(version)));
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.get_description()));
  page += fmt::format(".SH SYNOPSIS\n.B {}\n{}", roff(call), is_program ? "SUBCOMMAND " : "");
  page += "[OPTIONS]";
  for (const CLI::Option* const option : options_of(command)) {
    if (!option->nonpositional()) page += " [" + roff(names_of(*option)) + "]";
  }
  page += "\n";
  if (is_program) {
    page += ".SH SUBCOMMANDS\n";
    for (const CLI::App* const one : subcommands_of(program)) {
      page += fmt::format(".TP\n.BR {}\\-{} (1)\n{}\n", roff(name), roff(one->get_name()),
                          roff(one->get_description()));
    }
  }
  page += ".SH OPTIONS\n" + man_options(command);
  if (!command.get_footer().empty()) page += ".SH DESCRIPTION\n" + man_footer(command.get_footer());
  if (!is_program) page += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(program.get_name()));
  return page;
}

std::string bash_completion(const CLI::App& program) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* const command : subcommands_of(program)) {
    names.push_back(command->get_name());
    std::vector<std::string> options;
    for (const CLI::Option* const option : options_of(*command)) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
    cases += fmt::format("    {}) words={} ;;\n", command->get_name(),
                         quoted(fmt::format("{}", fmt::join(options, " "))));
  }
  const std::string& name = program.get_name();
  return fmt::format(
      "# Completion of {0} for bash\n"
      "_{0}() {{\n"
      "  local words='--help --version {1}' current=${{COMP_WORDS[COMP_CWORD]}}\n"
      "  ((COMP_CWORD == 1)) || case ${{COMP_WORDS[1]}} in\n"
      "{2}"
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)) || [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -o default -F _{0} {0}\n",
      name, fmt::join(names, " "), cases);
}

std::string zsh_completion(const CLI::App& program) {
  std::string commands;
  std::string cases;
  for (const CLI::App* const command : subcommands_of(program)) {
    commands += fmt::format(
        "    {}\n", quoted(command->get_name() + ":" + zsh_text(command->get_description())));
    cases += fmt::format("    {}) _arguments", command->get_name());
    for (const CLI::Option* const option : options_of(*command)) {
      const std::string value = option->get_type_name().empty()
                                    ? ""
                                    : ":" + zsh_text(option->get_type_name()) + ":_files";
      for (const std::string& name : option->get_lnames()) {
        cases += " \\\n      " + quoted(fmt::format("--{}[{}]{}", name,
                                                    zsh_text(option->get_description()), value));
      }
    }
    cases += " \\\n      '*:file:_files' ;;\n";
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
      "  case ${{words[1]}} in\n{2}  esac\n"
      "fi\n",
      program.get_name(), commands, cases);
}

}  // namespace beeline::tools
