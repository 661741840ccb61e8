#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh FUZZER TARGET OPTION...: fuzzes one decoder, starting from its seeds. An input that breaks it
# is kept in the folder of the fuzzer. The exit status is 1 then: 77, which libFuzzer uses, means "skipped" to meson.
set -eu

fuzzer=$1 target=$2
shift 2
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
"$fuzzer" --target="$target" --seeds="$corpus" -seed=1 -verbosity=0 -print_final_stats=1 \
  -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64 -error_exitcode=1 -timeout_exitcode=1 \
  -artifact_prefix="${fuzzer%/*}/$target-" "$@" "$corpus"
