#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [OPTION...] -- COMMAND...: a test of meson's in `scripts/vm`, whose options these are.
# Skipped (77) where no machine can be had: no QEMU, no kernel in the cache and none to download. Where
# only the module of siw cannot be had, the machine starts without it, and the suites that need it skip.
set -u -o pipefail
vm=$(dirname "${BASH_SOURCE[0]}")/../../scripts/vm

options=() kernel=() siw=''
while (($#)) && [[ $1 != -- ]]; do
  case $1 in
    --siw) siw=1 ;;
    --kernel)
      kernel=(--kernel "$2")
      shift
      ;;
    *) options+=("$1") ;;
  esac
  shift
done

# have OPTION... : they are prepared. Says what was done for it, or why it cannot be.
have() {
  local status=0 said
  said=$("$vm" "${kernel[@]}" "$@" --prepare 2>&1) || status=$?
  [[ -z $said ]] || printf '%s\n' "$said"
  return "$status"
}

have || exit 77
if [[ -n $siw ]] && have --siw; then
  options+=(--siw)
fi
exec "$vm" "${kernel[@]}" "${options[@]}" "$@" 2>&1
