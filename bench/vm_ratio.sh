#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares plugins with perftest on the kernel's soft RoCE, in one emulated machine:
#
#   scripts/vm -- bench/vm_ratio.sh [BEELINE [PLUGIN...]]
#
# Without arguments: build/tools/beeline and the plugin of the same build. All are measured in turns, so that
# other work on the machine affects all of them alike, and each process has its own processor: two polling
# processes on one would measure the scheduler's clock. It does not fail because of a speed, but prints whether
# a goal was met. BL_ROUNDS is the number of rounds (5).
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
(($# >= 1)) || set -- build/tools/beeline
(($# >= 2)) || set -- "$1" "${1%/tools/*}/plugin/abi/libnccl-net-beeline.so"
plugins=("${@:2}")
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

# row COLUMN PATTERN OPTION... : the same for `beeline perf` with the plugin that `plugin` names.
row() {
  local column=$1
  shift
  beeline_perf "$@" --pin --dev $near,$far 2>/run/client |
    awk -v column="$column" '/^ *[0-9]+ +[0-9]+ +uint8/ { print $column; exit }'
}

# in_turns NAME UNIT GOAL OURS THEIRS : OURS measures `plugin`, and THEIRS perftest; each prints a number. GOAL is
# the goal for OURS / THEIRS: "<= 1.3" or ">= 1.0".
in_turns() {
  local i n
  rm -f /run/figures.*
  for ((i = 0; i < rounds; ++i)); do
    for ((n = 0; n < ${#plugins[@]}; ++n)); do
      plugin=${plugins[n]}
      "$4" >>/run/figures.$n
    done
    "$5" >>/run/figures.perftest
  done
  printf '%s, %s\n  %-44s %s\n' "$1" "$2" perftest "$(paste -sd ' ' /run/figures.perftest)"
  for ((n = 0; n < ${#plugins[@]}; ++n)); do
    printf '  %-44s %s\n' "${plugins[n]}" "$(paste -sd ' ' /run/figures.$n)"
    ratios /run/figures.$n "$3"
  done
}

# ratios FIGURES GOAL : of the figures and those of perftest in the same round.
ratios() {
  paste -d ' ' "$1" /run/figures.perftest | awk '$1 > 0 && $2 > 0 { print $1 / $2 }' | sort -g |
    awk -v rounds="$rounds" -v sign="${2% *}" -v goal="${2#* }" '
      { ratio[NR] = $1 }
      END {
        if (NR < rounds) { printf "    only %d of %d rounds have figures\n", NR, rounds; exit }
        median = ratio[int((NR + 1) / 2)]
        met = sign == "<=" ? median <= goal : median >= goal
        printf "    by perftest: median %.2f, from %.2f to %.2f; the goal is %s %s: %s\n",
          median, ratio[1], ratio[NR], sign, goal, met ? "met" : "missed"
      }'
}

latency() { row 6 latency --sizes 8 --seconds 1; }
perftest_latency() { perftest 5 ib_write_lat -s 8 -n 2000; } # t_typical
stream() { row 6 stream --sizes 1M --seconds 1; }
perftest_stream() { perftest 4 ib_write_bw -s 1048576 -n 100 --report_gbits | awk '{ print $1 / 8 }'; }

set_up() { load_rxe && plug_in 1 && rdma_device rxe a1 b1; }
set_up || exit
gid=$(gid_index $near)
printf 'Linux %s, %d rounds, %d processors, clock %s\n' "$(uname -r)" "$rounds" "$(nproc)" \
  "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
in_turns 'half a round trip of 8 bytes' 'microseconds' '<= 1.3' latency perftest_latency
in_turns 'a stream of 1 MiB messages' 'GB/s' '>= 1.0' stream perftest_stream
plugin=${plugins[0]}
for ((i = 0; i < (rounds + 1) / 2; ++i)); do
  printf '64 connections: %s\n' "$(connections 64 --dev $near,$far | sed -n 's/^= //p')"
done
