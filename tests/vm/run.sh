#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [OPTION...] -- COMMAND...: runs a test of meson in `scripts/vm` with these options. It is
# skipped (77) if there is no machine: no QEMU, or no kernel in the cache and none to download. If only
# the module of siw is missing, the machine starts without it, and suites that need it are skipped.
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

# have OPTION...: prepares the machine for these options. Prints what it did, or why that failed.
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
