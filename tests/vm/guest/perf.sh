# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# `beeline perf` inside the emulated machine. A suite is started as SUITE BEELINE PLUGIN [WORD].

beeline=$1 plugin=$2
patience=240 # seconds for one run: bounds a hang, not a speed

# One host, so the ranks find one another over lo; their data goes over the RDMA devices.
export NCCL_SOCKET_IFNAME=lo

beeline_perf() { timeout --kill-after=5 "$patience" "$beeline" perf --plugin "$plugin" "$@"; }

# perf PATTERN OPTION... : right if it ends with 0 and compared all that arrived. Shows its last
# figure.
perf() {
  local status=0
  beeline_perf "$@" >/run/perf 2>&1 || status=$?
  cat /run/perf
  ((status == 0)) && grep -q '^# Wrong elements : 0 OK$' /run/perf || return 1
  sed -n 's/^# Avg \(.*\) : \(.*\)/= \1 \2/p' /run/perf
}

# all_patterns OPTION... : everything but allreduce, for a moment each.
all_patterns() {
  local pattern
  for pattern in latency stream rate bidir multirecv connect soak; do
    check "$pattern" perf "$pattern" --seconds 0.3 "$@"
  done
}

# all_reduces SIZES OPTION... : as NCCL 2.27 and as the newest calls the plugin; pairs and a ring.
all_reduces() {
  local sizes=$1 abi ranks
  shift
  for abi in v8 v12; do
    for ranks in 2 4; do
      check "allreduce $abi, $ranks ranks" \
        perf allreduce --abi "$abi" --ranks "$ranks" --sizes "$sizes" --iters 1 "$@"
    done
  done
}

# connections HOW_MANY OPTION... : how long they take together and one by one, from listen to the
# first message. Figures, with no limit.
connections() {
  local count=$1
  shift
  perf connect --comms "$count" --iters 1 --sizes 8 "$@" | tee /run/together | grep -v '^= ' &&
    perf connect --comms 1 --iters "$count" --sizes 8 "$@" | tee /run/one_by_one | grep -v '^= ' ||
    return
  printf '= together %s, one by one %s\n' "$(milliseconds "$count" /run/together)" \
    "$(milliseconds 1 /run/one_by_one)"
}

# A row of `connect` holds microseconds per comm: listen, connect, first message.
milliseconds() { # COMMS FILE
  awk -v comms="$1" '$3 == "uint8" { sum += ($5 + $6 + $7) * comms / 1000 }
    END { printf "%.0f ms", sum }' "$2"
}

# A share of the data went over each end of cables 1 and 2.
both_rails_used() {
  local card bytes
  for card in a1 b1 a2 b2; do
    bytes=$(bytes_sent "$card")
    echo "= $card $((bytes >> 10)) KiB"
    ((bytes > 4 << 20)) || return 1
  done
}
