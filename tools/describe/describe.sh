#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the manual pages and the completion of shells, as the command describes itself.
# Usage: describe.sh BEELINE FOLDER PAGE...
set -eu
beeline=$1 folder=$2
shift 2
"$beeline" completion bash >"$folder/beeline"
"$beeline" completion zsh >"$folder/_beeline"
for page; do
  name=${page%.1}
  subcommand=${name#beeline}
  # Without a word, the page is that of the command itself.
  # shellcheck disable=SC2086
  "$beeline" man ${subcommand#-} >"$folder/$page"
done
