#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# perf.sh SOFTNIC BEELINE PLUGIN FABRIC_FILE GROUP: runs the plugin under `beeline perf`, on a fabric of
# its own. If FABRIC_FILE is empty, it is softnic's default, two hosts with RoCE. Groups:
#   allreduce   2, 4 and 8 ranks, even and odd sizes; on RoCE every version of the interface
#   large       the same up to 64 MiB, with the newest version
#   rails       all-reduce with 4 ranks, each of which sends over 4 NICs
#   all-rails   the same with more versions of the interface, and up to 64 MiB
#   patterns    all the others, two ranks on two hosts
#   corrupt     a byte that the network changes must be reported as a wrong element
set -u -o pipefail

softnic=$1 beeline=$2 plugin=$3 group=$5
name=test-perf-$$-$RANDOM
fabric=(--name "$name")
[[ -z $4 ]] || fabric+=(--fabric "$4")
failed=0

# perf WORDS OPTION...: one run; prints its output if it fails.
perf() {
  local words=$1 log rc=0
  shift
  log=$("$softnic" run "${fabric[@]}" -- "$beeline" perf "$@" --plugin "$plugin" 2>&1) || rc=$?
  if ((rc == 0)) && grep -q '^# Wrong elements : 0 OK$' <<<"$log"; then
    printf 'ok    %s\n' "$words"
  else
    printf 'FAIL  %s (exit status %d)\n%s\n' "$words" "$rc" "$log"
    failed=1
  fi
}

every_version=(v6 v7 v8 v9 v10 v11 v12)
# The tables do not depend on the kind of network.
[[ -z $4 ]] || every_version=(v12)

all_reduce() { # SIZES RANKS VERSION...
  local sizes=$1 ranks=$2 abi
  for abi in "${@:3}"; do
    perf "allreduce $abi, $ranks ranks" allreduce --abi "$abi" --ranks "$ranks" --hosts h0,h1 \
      --comms 2 --iters 2 --sizes "$sizes"
  done
}

small() {
  local sizes=0,1,7,4K,65537,1000001,4M
  all_reduce $sizes 2 "${every_version[@]}"
  all_reduce $sizes 4 v12
  all_reduce $sizes 8 v8 v12
}

# They take long with many ranks, which do not depend on the kind of network either.
large() {
  all_reduce 16M,33333333,64M 2 v12
  ((${#every_version[@]} == 1)) || all_reduce 16M,33333333,64M 8 v12
}

# Versions before v9 cannot merge devices, so the plugin does.
over_rails() { # SIZES VERSION...
  local sizes=$1 abi merged
  for abi in "${@:2}"; do
    merged=(--rails 4)
    ((${abi#v} < 9)) && merged=(--env BEELINE_RAILS=4)
    perf "allreduce $abi, 4 ranks of 4 rails" allreduce --abi "$abi" --ranks 4 "${merged[@]}" \
      --iters 2 --sizes "$sizes"
  done
}

all_rails() {
  local small=0,1,3,7,127,128,129,4K,4097,64K,65537,131071,131072,131073,262147
  over_rails "$small,1000003,1M,4M,4194381,16M,64M,67108863" v6 v8 v9 v12
}

patterns() {
  local pattern
  for pattern in latency stream rate bidir multirecv connect soak; do
    perf "$pattern" "$pattern" --hosts h0,h1 --comms 2 --seconds 0.3
  done
}

# The port is told to corrupt a message during a run, which must then report wrong elements.
corrupt() {
  local which
  spoilt stream 5 --iters 20 || failed=1
  # In the middle: neither the first all-reduce nor the last. Every second request carries no data but
  # says what has been received.
  for which in {40..47}; do
    spoilt allreduce "$which" --iters 60 && return
  done
  failed=1
}

spoilt() { # PATTERN WHICH_REQUEST OPTION...
  local log rc=0
  # shellcheck disable=SC2016  # the inner shell expands them
  log=$("$softnic" run "${fabric[@]}" -- bash -c '
    "$0" ctl h0/softnic0 "corrupt@$3" &&
    exec "$1" perf --plugin "$2" --hosts h0,h1 --sizes 4K "${@:4}"
  ' "$softnic" "$beeline" "$plugin" "$2" "$1" "${@:3}" 2>&1) || rc=$?
  if ((rc == 1)) && grep -q '^# Wrong elements : [1-9]' <<<"$log"; then
    printf 'ok    %s: a corrupted message is noticed\n' "$1"
  else
    printf '%s: request %s was corrupted, and not noticed (exit status %d)\n%s\n' "$1" "$2" "$rc" "$log"
    return 1
  fi
}

case $group in
  allreduce) small ;;
  large) large ;;
  rails) over_rails 0,1,4097,131071,131073,1000003,4M v8 v12 ;;
  all-rails) all_rails ;;
  patterns) patterns ;;
  corrupt) corrupt ;;
  *) printf 'no group %s\n' "$group" && exit 2 ;;
esac
exit $failed
