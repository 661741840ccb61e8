// SPDX-License-Identifier: Apache-2.0
//
// The help of a command line, with lines that are no longer than the terminal is wide. Only for
// files that include CLI11 anyway, which takes long to compile.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>

#include "common/base/terminal_text.h"

namespace beeline {

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return broken_at_blanks(app->get_description(), 0, 0, help_columns()) + "\n";
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    // CLI11 indents all lines but the first.
    return broken_at_blanks(option->get_description(), 0, 0, help_columns() - get_column_width());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string name = "  " + command->get_name();
    const std::size_t gap = get_column_width() - std::min(get_column_width() - 1, name.size());
    return name + std::string(gap, ' ') +
           broken_at_blanks(command->get_description(), get_column_width(), get_column_width(),
                            help_columns()) +
           "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    if (app->get_footer().empty()) return "";
    std::string text;
    for (const std::string& line : CLI::detail::split(app->get_footer(), '\n')) {
      std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
      // An indented line with more than one blank is an entry of a list: a word, and what it means.
      const std::size_t gap = indent == 0 ? std::string::npos : line.find("  ", indent);
      if (gap != std::string::npos)
        indent = std::min(line.find_first_not_of(' ', gap), line.size());
      text += line.substr(0, indent) +
              broken_at_blanks(line.substr(indent), indent, indent, help_columns()) + "\n";
    }
    return text;
  }
};

}  // namespace beeline
