# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the table of scripts/gpu-check, on the screen and as Markdown. Its rows come from a file with
# tabs between the fields: part, what, network, NCCL, ranks, memory, result, seconds.

# print_rows FILE: prints them on the screen. The result comes last, since it may be long.
print_rows() {
  awk -F '\t' 'BEGIN {
    format = "%-4s  %-28s  %-14s  %-9s  %5s  %-15s  %9s  %s\n"
    printf format, "part", "what", "network", "NCCL", "ranks", "memory", "time s", "result"
  } { printf format, $1, $2, $3, $4, $5, $6, $8, $7 }' "$1"
}

# wrong_rows FILE: the number of wrong rows.
wrong_rows() { awk -F '\t' '$7 ~ /^WRONG/ { wrong++ } END { print wrong + 0 }' "$1"; }

# rows_not_run FILE: the number of rows that say why something was not run.
rows_not_run() { awk -F '\t' '$7 ~ /^not run/ { missing++ } END { print missing + 0 }' "$1"; }

# write_results FILE ROWS FACTS COMMAND VERDICT: writes the page of a run for docs/results/.
write_results() {
  {
    printf '# GPU check, %s\n\n' "$(date -u +%F)"
    # shellcheck disable=SC2016  # backquotes of Markdown
    printf '`%s` at %s UTC. %s\n\n```\n%s\n```\n\n' "$4" "$(date -u '+%F %T')" "$5" "$3"
    awk -F '\t' 'BEGIN {
      print "| part | what | network | NCCL | ranks | memory | result | time s |"
      print "|---|---|---|---|---|---|---|---|"
    } { gsub(/[|]/, "/"); printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7, $8 }' "$2"
  } >"$1"
}
