#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares the plugin with perftest on the kernel's soft RoCE, in one emulated machine:
#
#   scripts/vm -- bench/vm_ratio.sh [BEELINE PLUGIN]      (build/tools/beeline and its plugin)
#
# Both are measured alternately, so that other work on the machine affects both, and each process has its own
# processor: two polling processes on one would measure the scheduler's clock. It does not fail because of a
# speed, but prints whether a goal was met. BL_ROUNDS is the number of rounds (5).
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
set -- "${1-build/tools/beeline}" "${2-build/plugin/abi/libnccl-net-beeline.so}"
source tests/vm/guest/check.sh
source tests/vm/guest/rdma.sh
source tests/vm/guest/perf.sh

rounds=${BL_ROUNDS-5}
port=18515 # perftest's
near=rxe_a1 far=rxe_b1

listening() {
  grep -qhE "^ *[0-9]+: [0-9A-F]+:$(printf %04X $port) [0-9A-F]+:0000 0A" /proc/net/tcp{,6}
}

# perftest COLUMN PROGRAM OPTION... : prints one number of its only row of results.
perftest() {
  local column=$1 server
  shift
  timeout 60 taskset -c 0 "$@" -F -x "$gid" -p $port -d $near >/run/server 2>&1 &
  server=$!
  until_true 30 listening || cat /run/server
  timeout 60 taskset -c 1 "$@" -F -x "$gid" -p $port -d $far 10.1.0.1 2>/run/client |
    awk -v column="$column" '/^ *[0-9]+ +[0-9]+ / { print $column }'
  wait $server
}

# row COLUMN PATTERN OPTION... : the same for `beeline perf`.
row() {
  local column=$1
  shift
  beeline_perf "$@" --pin --dev $near,$far 2>/run/client |
    awk -v column="$column" '/^ *[0-9]+ +[0-9]+ +uint8/ { print $column; exit }'
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# in_turns NAME UNIT GOAL OURS THEIRS : OURS and THEIRS are functions that print a number. GOAL is the goal for
# OURS / THEIRS: "<= 1.5" or ">= 0.9".
in_turns() {
  local i
  : >/run/ours && : >/run/theirs
  for ((i = 0; i < rounds; ++i)); do
    "$4" >>/run/ours
    "$5" >>/run/theirs
  done
  printf '%s, %s\n  ours   %s\n  theirs %s\n' "$1" "$2" \
    "$(paste -sd ' ' /run/ours)" "$(paste -sd ' ' /run/theirs)"
  awk -v ours="$(median </run/ours)" -v theirs="$(median </run/theirs)" \
    -v sign="${3% *}" -v goal="${3#* }" 'BEGIN {
      if (ours <= 0 || theirs <= 0) { print "  no figures"; exit }
      ratio = ours / theirs
      met = sign == "<=" ? ratio <= goal : ratio >= goal
      printf "  medians %.2f and %.2f: %.2f x, the goal is %s %s: %s\n",
        ours, theirs, ratio, sign, goal, met ? "met" : "missed"
    }'
}

our_latency() { row 6 latency --sizes 8 --seconds 1; }
their_latency() { perftest 5 ib_write_lat -s 8 -n 2000; } # t_typical
our_stream() { row 6 stream --sizes 1M --seconds 1; }
their_stream() { perftest 4 ib_write_bw -s 1048576 -n 100 --report_gbits | awk '{ print $1 / 8 }'; }

set_up() { load_rxe && plug_in 1 && rdma_device rxe a1 b1; }
set_up || exit
gid=$(gid_index $near)
printf 'Linux %s, %d rounds, %d processors, clock %s\n' "$(uname -r)" "$rounds" "$(nproc)" \
  "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
in_turns 'half a round trip of 8 bytes' 'microseconds' '<= 1.5' our_latency their_latency
in_turns 'a stream of 1 MiB messages' 'GB/s' '>= 0.9' our_stream their_stream
for ((i = 0; i < (rounds + 1) / 2; ++i)); do
  printf '64 connections: %s\n' "$(connections 64 --dev $near,$far | sed -n 's/^= //p')"
done
