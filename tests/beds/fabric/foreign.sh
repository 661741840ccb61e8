#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs unmodified third-party programs over softnic: Debian's ibverbs-utils and perftest, most of them
# on a RoCE fabric and some on InfiniBand.
#
#   foreign.sh SOFTNIC INFINIBAND_FABRIC [verbs-utils|write|send|read|latency|events|atomic|shared|ucx]...
#
# perftest measures the processor's clock for every size, which takes most of the time. The exit status
# is 77 if the programs are not installed.
set -u -o pipefail
exec </dev/null
export LC_ALL=C
source "$(dirname "${BASH_SOURCE[0]}")/foreign_lib.sh"

# --- What the programs print ----------------------------------------------------------------------

# wants PATTERN...: reads text that must contain all patterns, and names the first that is missing.
wants() {
  local text pattern
  text=$(cat)
  for pattern in "$@"; do
    if ! grep -qE "$pattern" <<<"$text"; then
      echo "/$pattern/ is missing"
      return 1
    fi
  done
}

# Result lines are: bytes, iterations, peak MB/s, average MB/s, messages. On a busy machine perftest may
# fail to measure the speed of the processor's clock. It then says so, and prints 0 in that line.
bandwidth() { # LINES
  awk -v wanted="$1" '/Correlation coefficient/ { unclocked = 1 }
    /^ *[0-9]/ {
      ++lines; bytes = $1; rate = $4
      if (rate <= 0) bad = 1
    }
    END {
      if (lines != wanted || (bad && !unclocked)) { print lines + 0, "good lines of", wanted; exit 1 }
      if (lines > 1) printf "%d sizes, ", lines
      printf "%d bytes at %.0f MB/s\n", bytes, rate
    }'
}
one_size() { bandwidth 1; }
all_sizes() { bandwidth 23; }

# Result lines are: bytes, iterations, least, most, typical microseconds, and more. For the clock, see
# bandwidth.
latency() { # LINES
  awk -v wanted="$1" '/Correlation coefficient/ { unclocked = 1 }
    /^ *[0-9]/ {
      ++lines; us[$1] = $5
      if ($5 <= 0) bad = 1
    }
    END {
      if (lines != wanted || (bad && !unclocked)) { print lines + 0, "good lines of", wanted; exit 1 }
      if (lines > 1) printf "%d sizes, ", lines
      printf "8 bytes in %.2f us\n", us[8]
    }'
}
one_latency() { latency 1; }
all_latencies() { latency 23; }

round_trip() {
  awk '/usec\/iter/ { text = $(NF - 1) }
    /invalid data/ { bad = 1 }
    END {
      if (text == "" || bad) { print "no result, or wrong data"; exit 1 }
      printf "%s us a round trip\n", text
    }'
}

ucx_figure() {
  awk '/^Final:/ { microseconds = $4 }
    /ERROR/ { bad = 1 }
    END {
      if (microseconds <= 0 || bad) { print "no result, or an error"; exit 1 }
      printf "%s us on average\n", microseconds
    }'
}

two_devices() {
  wants 'softnic0\s+[0-9a-f]{16}$' 'softnic1\s+[0-9a-f]{16}$' && echo "softnic0 and softnic1"
}

roce_info() {
  wants '^hca_id:.softnic0' '^hca_id:.softnic1' 'node_guid:.*[0-9a-f]{4}:' 'max_qp:' \
    'phys_port_cnt:.*1$' 'state:.*PORT_ACTIVE \(4\)' 'active_mtu:.*4096 \(5\)' \
    'link_layer:.*Ethernet' 'active_width:' 'active_speed:' \
    'GID\[ *3\]:.*::ffff:.*RoCE v2' 'GID\[ *1\]:.*fe80:.*RoCE v2' 'GID\[ *0\]:.*fe80:.*RoCE v1' &&
    echo "2 active RoCE devices with GIDs of v1 and v2"
}

infiniband_info() {
  wants '^hca_id:.softnic1' 'state:.*PORT_ACTIVE \(4\)' 'link_layer:.*InfiniBand' \
    'port_lid:.*[1-9]' 'sm_lid:.*[1-9]' 'GID\[ *0\]:.*fe80:' &&
    echo "2 active InfiniBand devices with LIDs"
}

# --- The programs ---------------------------------------------------------------------------------

# ibv_asyncwatch runs until it is killed, and must report a port that goes down and up again.
watch_events() {
  local heard=0
  label="ibv_asyncwatch$where"
  new_fabric
  (on h0 stdbuf -oL ibv_asyncwatch -d softnic0) >"$scratch/output" 2>&1 &
  server=$!
  if until_output 'async event FD'; then
    "$softnic" ctl --name "$fabric" h0/softnic0 down up >"$scratch/ctl" 2>&1
    if until_output PORT_ERR && until_output PORT_ACTIVE; then heard=1; fi
  fi
  end_server
  wait
  if ((heard)); then good "port error, port active"; else bad "it heard nothing"; fi
}

# until_output PATTERN: waits until the running program has printed it. Fails if the program ends
# before.
until_output() {
  until grep -qE "$1" "$scratch/output"; do
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.01
  done
}

group_verbs_utils() {
  alone two_devices ibv_devices
  alone roce_info ibv_devinfo -v
  watch_events
  pair round_trip ibv_rc_pingpong -g 3 -c
  pair round_trip ibv_rc_pingpong -g 1 -c -s 1048576 -n 200
  pair round_trip ibv_rc_pingpong -g 3 -c -d softnic1 -m 256 -s 65536
  refused ibv_uc_pingpong -g 3
  refused ibv_ud_pingpong -g 3
  use_infiniband
  alone infiniband_info ibv_devinfo -v
  pair round_trip ibv_rc_pingpong -c
  pair round_trip ibv_rc_pingpong -c -g 0 -s 65536 -n 500
}

# bandwidth_of PROGRAM OPTION...: the options are for InfiniBand. -F: ignore changes of the clock.
bandwidth_of() {
  pair all_sizes "$1" -F -x 3 -n 100 -a
  pair one_size "$1" -F -x 3 -n 500 -q 8
  pair one_size "$1" -F -x 3 -n 1000 -b
  use_infiniband
  pair one_size "$1" -F -n 500 "${@:2}"
}
group_write() { bandwidth_of ib_write_bw -s 1048576; }
group_send() {
  bandwidth_of ib_send_bw -b
  use_roce
  refused ib_send_bw -R -x 3 # librdmacm uses the kernel, which does not know softnic's devices
}
group_read() { bandwidth_of ib_read_bw -q 8; }

group_latency() {
  pair all_latencies ib_write_lat -F -x 3 -n 50 -a
  pair all_latencies ib_send_lat -F -x 3 -n 50 -a
  use_infiniband
  pair one_latency ib_write_lat -F -n 1000 -s 8
}

# Programs that sleep until a completion channel wakes them.
group_events() {
  pair round_trip ibv_rc_pingpong -g 3 -c -e
  pair round_trip ibv_srq_pingpong -g 3 -c -e
  pair one_size ib_send_bw -F -x 3 -n 1000 -e
  pair one_size ib_send_bw -F -x 3 -n 1000 -e -b
  pair one_latency ib_send_lat -F -x 3 -n 1000 -s 8 -e
  pair one_size ib_read_bw -F -x 3 -n 1000 -e
  use_infiniband
  pair one_size ib_send_bw -F -n 1000 -e
}

group_atomic() {
  pair one_size ib_atomic_bw -F -x 3 -n 2000
  pair one_size ib_atomic_bw -F -x 3 -n 2000 -A CMP_AND_SWAP
  pair one_latency ib_atomic_lat -F -x 3 -n 1000
  use_infiniband
  pair one_size ib_atomic_bw -F -n 1000 -q 4
}

group_shared() {
  pair round_trip ibv_srq_pingpong -g 3 -c
  pair round_trip ibv_srq_pingpong -g 3 -c -q 4 -s 65536
  pair one_size ib_send_bw -F -x 3 -n 1000 -q 4 --use-srq
  use_infiniband
  pair round_trip ibv_srq_pingpong -c -q 8
}

# UCX checks for the devices' files before it calls libibverbs, so it runs in a mount namespace that
# has them.
group_ucx() {
  if ! command -v ucx_perftest >/dev/null || ! "${with_uverbs[@]}" true 2>/dev/null; then
    echo 'skipped: needs ucx_perftest (Debian has it in ucx-utils) and the right to mount'
    exit 77
  fi
  wrap=("${with_uverbs[@]}")
  local ucx=(ucx_perftest -x rc_verbs -d softnic0:1 -n 1000)
  pair ucx_figure "${ucx[@]}" -t am_lat
  pair ucx_figure "${ucx[@]}" -t put_lat -D zcopy -s 65536
  pair ucx_figure "${ucx[@]}" -t get -D zcopy -s 65536
  pair ucx_figure "${ucx[@]}" -t am_bw -D bcopy -s 4096
  pair ucx_figure "${ucx[@]}" -t add_lat
  pair ucx_figure "${ucx[@]}" -t cswap
  wrap=()
}

use_roce() { fabric_file='' where=''; }
use_infiniband() { fabric_file=$infiniband where=' on InfiniBand'; }

for program in ibv_{devices,devinfo,asyncwatch} ibv_{rc,uc,ud,srq}_pingpong \
  ib_{write,send,read,atomic}_bw ib_{write,send,atomic}_lat; do
  if ! command -v "$program" >/dev/null; then
    echo "skipped: $program is not installed (Debian has it in ibverbs-utils and perftest)"
    exit 77
  fi
done

softnic=$1 infiniband=$2
with_uverbs=(unshare --mount --propagation private "${BASH_SOURCE[0]%/*}/with_uverbs.sh")
shift 2
(($#)) || set -- verbs-utils write send read latency events atomic shared ucx
for group in "$@"; do
  use_roce
  "group_${group//-/_}"
done
report
