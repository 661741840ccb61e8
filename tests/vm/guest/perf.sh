# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs `beeline perf` inside the emulated machine. A suite is started as SUITE BEELINE PLUGIN [WORD].

beeline=$1 plugin=$2
patience=240 # seconds for one run: limits a hang, not a speed

# All ranks are on one host and find one another over lo. Their data goes over the RDMA devices.
export NCCL_SOCKET_IFNAME=lo

beeline_perf() { timeout --kill-after=5 "$patience" "$beeline" perf --plugin "$plugin" "$@"; }

# perf PATTERN OPTION...: succeeds if the exit status is 0 and all received data was compared. Shows its
# last figure.
perf() {
  local status=0
  beeline_perf "$@" >/run/perf 2>&1 || status=$?
  cat /run/perf
  ((status == 0)) && grep -q '^# Wrong elements : 0 OK$' /run/perf || return 1
  sed -n 's/^# Avg \(.*\) : \(.*\)/= \1 \2/p' /run/perf
}

# all_patterns OPTION...: all patterns except allreduce, each for a short time.
all_patterns() {
  local pattern
  for pattern in latency stream rate bidir multirecv connect soak; do
    check "$pattern" perf "$pattern" --seconds 0.3 "$@"
  done
}

# all_reduces SIZES OPTION...: with the table of NCCL 2.27 and with the newest; two ranks, and a ring.
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

# rail_returns KIND: one of two rails of these devices goes down under a stream, and comes back.
rail_returns() {
  local job status=0
  sent_before=$(bytes_sent a2)
  perf stream --abi v12 --rails 2 --sizes 256K --seconds 20 --comms 1 \
    --env "0:NCCL_IB_HCA==$1_a1,$1_a2" --env "1:NCCL_IB_HCA==$1_b1,$1_b2" &
  job=$!
  until_true 60 has_sent a2 1000000 && ip link set b2 down && until_true 20 grep -q 'went over to' /run/perf &&
    bring_up b2 && until_true 20 grep -q 'it again, after' /run/perf || status=1
  wait "$job" && return "$status"
}
has_sent() { (($(bytes_sent "$1") > sent_before + $2)); } # CARD BYTES

# connections HOW_MANY OPTION...: shows how long they take, all at once and one after another, from listen
# to the first message. There is no limit.
connections() {
  local count=$1
  shift
  perf connect --comms "$count" --iters 1 --sizes 8 "$@" | tee /run/together | grep -v '^= ' &&
    perf connect --comms 1 --iters "$count" --sizes 8 "$@" | tee /run/one_by_one | grep -v '^= ' ||
    return
  printf '= together %s, one by one %s\n' "$(milliseconds "$count" /run/together)" \
    "$(milliseconds 1 /run/one_by_one)"
}

# A row of `connect` has microseconds for each comm: listen, connect, first message.
milliseconds() { # COMMS FILE
  awk -v comms="$1" '$3 == "uint8" { sum += ($5 + $6 + $7) * comms / 1000 }
    END { printf "%.0f ms", sum }' "$2"
}

# Succeeds if data went over both ends of cables 1 and 2.
both_rails_used() {
  local card bytes
  for card in a1 b1 a2 b2; do
    bytes=$(bytes_sent "$card")
    echo "= $card $((bytes >> 10)) KiB"
    ((bytes > 4 << 20)) || return 1
  done
}
