#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh FUZZER TARGET OPTION...: fuzzes one decoder, starting from its seeds. An input that breaks it
# is kept in the folder of the fuzzer.
set -eu

fuzzer=$1 target=$2
shift 2
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
"$fuzzer" --target="$target" --seeds="$corpus" -seed=1 -verbosity=0 -print_final_stats=1 \
  -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=64 \
  -artifact_prefix="${fuzzer%/*}/$target-" "$@" "$corpus"
