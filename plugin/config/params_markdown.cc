// SPDX-License-Identifier: Apache-2.0
//
// The page has a table for each group of parameters, and then a section for each parameter, because
// the help is too long for a table.
#include <cctype>

#include "plugin/config/config.h"

namespace beeline {
namespace {

constexpr std::string_view kHead = R"(# Parameters

<!-- Generated from plugin/config/params.def; after a change there, "ninja parameters" writes it. -->

Parameters are environment variables. They must be set before the process starts. `BEELINE_X` wins over
the NCCL variable that a parameter honors, and that variable wins over the default. An empty variable
counts as not set.

If a value is not valid, there is a warning, and the default is used. There is also a warning for each
`BEELINE_` variable that is not on this page. With `NCCL_DEBUG=INFO` the log lists each value that was
set, with its variable. It also lists the variables of NCCL's own InfiniBand transport that were set but
have no effect on this plugin (such as `NCCL_IB_FIFO_TC`), and each `NCCL_IB_` variable that NCCL is not
known to have. The latter is a warning if one letter is wrong in a name that has an effect.

- A **switch** is `0` or `1`; `no`, `yes`, `off`, `on`, `false` and `true` are also accepted.
- A **number** is an integer: decimal, or hexadecimal with `0x`.
- A **size** is a number of bytes, or of KiB, MiB or GiB with the suffix `K`, `M` or `G`.
- A **time** is a number with the unit `ms` or `s`.

[Tuning](tuning.md) says which of them to set for what, and which to leave alone.

## By subject

A name links to the section of the parameter. A variable of NCCL in the last column is read if the
`BEELINE_` variable is not set.
)";

std::string code(std::string_view text) {
  return text.empty() ? "empty" : "`" + std::string(text) + "`";
}

// Wraps the text at this many columns, as in the rest of the documentation.
std::string wrapped(std::string_view text) {
  constexpr size_t kColumns = 100;
  std::string lines;
  while (text.size() > kColumns) {
    const size_t space = text.rfind(' ', kColumns);
    if (space == std::string_view::npos) break;
    lines += std::string(text.substr(0, space)) + "\n";
    text.remove_prefix(space + 1);
  }
  return lines + std::string(text) + "\n";
}

std::string lowered(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

std::string table_head(std::string_view group) {
  return "\n### " + std::string(group) +
         "\n\n| parameter | what it sets | default | honors |\n|---|---|---|---|\n";
}

// A row of a table at the top. It links to the section of the parameter.
std::string table_row(const ParamText& row) {
  const std::string name = std::string(kParamPrefix) + std::string(row.name);
  return "| [`" + name + "`](#" + lowered(name) + ") | " + std::string(row.summary) + " | " +
         code(row.default_value) + " | " + (row.honors.empty() ? "" : code(row.honors)) + " |\n";
}

std::string section(const ParamText& row) {
  std::string facts = std::string(row.kind);
  if (row.kind != Text::kKind) facts += ": " + row.allowed;
  facts += "; default " + code(row.default_value);
  if (!row.honors.empty()) facts += "; honors " + code(row.honors);
  facts += "; since " + std::string(row.since);
  facts.front() = static_cast<char>(facts.front() - 'a' + 'A');
  return "## " + std::string(kParamPrefix) + std::string(row.name) + "\n\n" + wrapped(facts + ".") +
         "\n" + wrapped(row.help);
}

}  // namespace

std::string params_markdown() {
  std::string page(kHead);
  std::string_view group;
  for (const ParamText& row : param_texts()) {
    if (row.group != group) page += table_head(row.group);
    group = row.group;
    page += table_row(row);
  }
  for (const ParamText& row : param_texts()) page += "\n" + section(row);
  return page;
}

}  // namespace beeline
