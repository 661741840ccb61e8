#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [OPTION...] -- COMMAND...: a test of meson's in `scripts/vm`, whose options these are.
# Skipped (77) where no machine can be had: no QEMU, no kernel in the cache and none to download.
set -u -o pipefail
vm=$(dirname "${BASH_SOURCE[0]}")/../../scripts/vm

prepare=(--prepare)
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    --) break ;;
    --siw) prepare+=(--siw) ;;
    --kernel) prepare+=(--kernel "${@:i+1:1}") ;;
  esac
done

if ! said=$("$vm" "${prepare[@]}" 2>&1); then
  printf '%s\n' "$said"
  exit 77
fi
[[ -z $said ]] || printf '%s\n' "$said"
exec "$vm" "$@" 2>&1
