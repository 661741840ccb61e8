#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# two_hosts.sh BEELINE PLUGIN: runs one rank on each of two emulated machines, which are connected by one
# wire for each of two rails. The exit status is 77 without a kernel or QEMU.
set -u -o pipefail
here=$(dirname "${BASH_SOURCE[0]}")
vm=$here/../../scripts/vm
if ! said=$("$vm" --prepare 2>&1); then
  printf '%s\n' "$said"
  exit 77
fi

scratch=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT

# host NUMBER BEELINE PLUGIN: starts a machine. Each has a processor of its own, so that neither starves.
host() {
  local mine=$1 peer=$((1 - $1)) wires=() rail
  for rail in 1 2; do
    wires+=(--wire "$scratch/$rail.$mine,$scratch/$rail.$peer")
  done
  exec "$vm" --cpus 1 --timeout 500 "${wires[@]}" -- "$here/suites/host.sh" "$2" "$3" "$mine"
}

for number in 0 1; do
  host $number "$@" >"$scratch/said.$number" 2>&1 &
  pids+=($!)
done
failed=0
for number in 0 1; do
  wait "${pids[number]}" || failed=1
done
printf -- '--- host 1\n'
cat "$scratch/said.1"
printf -- '--- host 0\n'
cat "$scratch/said.0" # ends with the counts
exit $failed
