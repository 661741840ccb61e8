#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# faults.sh BEELINE PLUGIN [ROW...]: tests the plugin when the network fails under traffic.
#
# Two ranks of `beeline perf` move data, rank 0 at end a1 of a cable and rank 1 at end b1. Their control
# channel goes over lo, which stands for a management network. Once data flows, a row injects one fault
# into the cable, a device or a process. Within a time that the row sets, either
#   the job continues to its end, and all data is right, or
#   both ranks report what failed: host, device, peer and cause.
# There must never be a hang, a crash or wrong data. docs/faults.md describes these rows.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"

beeline=$1 plugin=$2
rows=("${@:3}")
job_log=/run/job job=''

# A timeout of 2^14 * 4 us and six retries: the device reports within half a second. With seven
# retries, rxe retries for ever.
quick=(--env BEELINE_TIMEOUT=14 --env BEELINE_RETRY_CNT=6)
patient=(--env BEELINE_TIMEOUT=14 --env BEELINE_RETRY_CNT=7)
# Without recovery, a path that fails ends the job. In `endless` the plugin has to notice that itself.
plain=("${quick[@]}" --env BEELINE_RECOVERY=0)
endless=("${patient[@]}" --env BEELINE_RECOVERY=0 --env BEELINE_STALL_TIMEOUT=3s)
for_ever=(--sizes 64K --iters 100000)

# --- The job ----------------------------------------------------------------------------------------

# start PATTERN OPTION...: starts a job in the background. With --hold, a rank that has failed does not
# exit, so that the other has to notice the fault itself. Each rank has one device: no other stands in for
# it.
start() {
  sent_before=$(packets_sent)
  NCCL_SOCKET_IFNAME=lo BEELINE_STANDBY=0 "$beeline" perf "$@" --plugin "$plugin" --dev rxe_a1,rxe_b1 --ranks 2 \
    --hold 30 --timeout 60 >"$job_log" 2>&1 &
  job=$!
}

packets_sent() {
  local device all=0
  for device in rxe_a1 rxe_b1; do
    all=$((all + $(<"/sys/class/infiniband/$device/ports/1/hw_counters/sent_pkts")))
  done
  echo "$all"
}
have_sent() { (($(packets_sent) >= sent_before + $1)); } # N packets since the start

job_has_ended() { ! kill -0 "$job" 2>/dev/null; }
end_job() {
  [[ -n $job ]] || return
  kill -9 "$job" 2>/dev/null # its ranks end with it
  wait "$job" 2>/dev/null
  job=''
}

# Waits until the job moves data.
flowing() {
  until_true 30 has_begun && ! job_has_ended && return
  failed 'the job moves no data'
}
has_begun() { job_has_ended || have_sent 500; }

pid_of_rank() { awk -v rank="$1" '$2 == "Rank" && $3 == rank && $4 == "Pid" { print $5 }' "$job_log"; }

# --- The fault --------------------------------------------------------------------------------------

microseconds() { echo "${EPOCHREALTIME/./}"; }
passed() { awk -v from="$injected" -v to="$(microseconds)" 'BEGIN { printf "%.1f s", (to - from) / 1e6 }'; }

# inject COMMAND...: injects a fault while data moves.
inject() {
  flowing || return
  injected=$(microseconds)
  "$@" || failed "this command failed: $*"
}

lose() { # PERCENT CARD...
  local card
  for card in "${@:2}"; do tc qdisc replace dev "$card" root netem loss "$1%" limit 10000 || return; done
}
lose_large() { # CARD
  tc qdisc add dev "$1" clsact &&
    tc filter add dev "$1" ingress basic match 'meta(pkt_len gt 1500)' action drop
}
heal() { # CARD...
  local card
  for card in "$@"; do tc qdisc del dev "$card" root 2>/dev/null; done
  return 0
}
flap() { ip link set b1 down && bring_up b1; }
# until_waiting COMMAND...: the only link is down until both ends wait for it.
until_waiting() {
  "$@" && until_true 20 waits 0 && until_true 20 waits 1
}
waits() { grep -qE "^rank $1: .*connections? waits?, because no other path works" "$job_log"; } # RANK
another_address() { ip addr add 10.77.0.2/24 dev b1 && ip addr del 10.77.0.2/24 dev b1; }
signal_rank() { kill "$1" "$(pid_of_rank "$2")"; } # SIGNAL RANK

# --- Expected results -------------------------------------------------------------------------------

failed() { # WHY
  fail "$row" "$1"
  tail -n 40 "$job_log" | sed 's/^/    /'
  return 1
}

# goes_on SECONDS: the job must end within this time, and all data must be right.
goes_on() {
  local status=0
  until_true "$1" job_has_ended || { failed "the job hangs: it has not ended after $1 s"; return; }
  wait "$job" || status=$?
  if ((status != 0)) || ! grep -q '^# Wrong elements : 0 OK$' "$job_log"; then
    failed "the job ended with status $status after $(passed)"
    return
  fi
  pass "$row" "the job continues; all data is right after $(passed)"
}

# both_fail SECONDS WORDS WORDS: ranks 0 and 1 must fail within this time, and their messages must match
# these words. Empty words: that rank is not checked.
both_fail() {
  local limit=$1 words=("$2" "$3") rank lines=() status=0
  for rank in 0 1; do
    [[ -n ${words[rank]} ]] || continue
    until_true "$limit" has_spoken "$rank" || { failed "rank $rank reports no fault after $limit s"; return; }
    lines+=("$(passed): rank $rank cannot $(sentence "$rank" | sed 's/.*: cannot //')")
    sentence "$rank" | grep -qE "${words[rank]}" || { failed "rank $rank reports another cause"; return; }
  done
  until_true 20 job_has_ended || { failed 'both ranks have reported the fault, and do not exit'; return; }
  wait "$job" || status=$?
  if ((status != 1)) || grep -qE "$never" "$job_log"; then
    failed "the job ended with status $status, or with a crash or wrong data"
    return
  fi
  pass "$row" 'both ends fail'
  for rank in "${!lines[@]}"; do note "${lines[rank]}"; done
}

# A link that goes down is an event at both of its ends.
port_events() {
  local event
  for event in '0: NET WARN .*port rxe_a1' '1: NET WARN .*port rxe_b1'; do
    until_true 20 grep -qE "^rank $event:1 of this host (went|reports an error)" "$job_log" ||
      { failed 'the event of a port is not logged'; return; }
  done
}

# The message of a rank, which must have the host, the device, the peer and the cause.
sentence() { # RANK
  local own=rxe_a1 peer=rxe_b1
  (($1 == 0)) || { own=rxe_b1 peer=rxe_a1; }
  grep -m 1 -E "^rank $1: NET WARN .* on $(hostname), device $own.* peer .*$(hostname).*$peer.*: cannot .+: .+" \
    "$job_log"
}
has_spoken() { sentence "$1" >/dev/null; }

never='wrong (data|elements)|signal (4|6|7|8|11) |ERROR: [A-Z][a-z]*Sanitizer|runtime error:'
no_answer='no answer after all retries'
device='its device could not send|queue pair went into error|its port |its GID '
either="$no_answer|$device"
stalled='nothing has completed for 3'
cut_off='its host has been silent'

# --- The rows ---------------------------------------------------------------------------------------

row_link_of_sender_down_ends() {
  start stream "${for_ever[@]}" "${plain[@]}"
  inject ip link set a1 down && port_events && both_fail 20 "$either" "$either"
}
row_link_of_receiver_down_ends() {
  start stream "${for_ever[@]}" "${plain[@]}"
  inject ip link set b1 down && port_events && both_fail 20 "$either" "$either"
}
row_link_flaps_ends() {
  start bidir "${for_ever[@]}" "${plain[@]}"
  inject flap && both_fail 20 "$either" "$either"
}
# There is no other link.
row_link_of_sender_returns() {
  start stream --sizes 64K --iters 1000
  inject until_waiting ip link set a1 down && bring_up a1 && goes_on 60
}
row_link_of_receiver_returns() {
  start bidir --sizes 64K --iters 1000
  inject until_waiting ip link set b1 down && bring_up b1 && goes_on 60
}
# The control channel goes by the same link. So the ends cannot exchange reports before it is back.
row_link_with_control_returns() {
  start bidir --sizes 64K --iters 1000 \
    --env 0:NCCL_SOCKET_IFNAME=a1 --env 1:NCCL_SOCKET_IFNAME=b1
  inject ip link set b1 down && port_events && bring_up b1 && goes_on 90
}
row_link_flaps() {
  start bidir --sizes 64K --iters 1000
  inject flap && goes_on 60
}
row_packets_return() {
  start bidir --sizes 64K --iters 1000 "${quick[@]}"
  inject until_waiting lose 100 a1 b1 && heal a1 b1 && goes_on 60
}
# The device retries for ever, so the plugin has to notice the fault itself.
row_packets_return_late() {
  start bidir --sizes 64K --iters 1000 "${patient[@]}" --env BEELINE_STALL_TIMEOUT=3s
  inject until_waiting lose 100 a1 b1 && heal a1 b1 && goes_on 60
}
row_address_returns() {
  start bidir --sizes 64K --iters 1000
  inject until_waiting ip addr del 10.1.0.2/24 dev b1 && ip addr add 10.1.0.2/24 dev b1 &&
    bring_up b1 && goes_on 60
}
row_loss_1() {
  start bidir --sizes 64K --iters 300 "${quick[@]}"
  inject lose 1 a1 b1 && goes_on 90
}
row_loss_1_all_the_time() {
  lose 1 a1 b1 && injected=$(microseconds)
  start soak --seconds 2 --sizes 0..64K --seed 7 "${quick[@]}"
  goes_on 90
}
row_loss_10() {
  # Six retries in a row may be lost at times.
  start stream --sizes 64K --iters 1000 "${patient[@]}"
  inject lose 10 a1 b1 || return
  sent_before=$(packets_sent)
  until_true 60 have_sent 1000 || { failed 'no data moves at 10 % loss'; return; }
  heal a1 b1
  goes_on 60
}
row_data_lost_ends() {
  start stream "${for_ever[@]}" "${plain[@]}"
  inject lose 100 a1 && both_fail 20 "$no_answer" "$either"
}
row_answers_lost_ends() {
  start stream "${for_ever[@]}" "${plain[@]}"
  inject lose 100 b1 && both_fail 20 "$no_answer" "$either"
}
row_all_lost_ends() {
  start bidir "${for_ever[@]}" "${plain[@]}"
  inject lose 100 a1 b1 && both_fail 20 "$no_answer" "$no_answer"
}
row_all_lost_without_report() {
  start bidir "${for_ever[@]}" "${endless[@]}"
  inject lose 100 a1 b1 && both_fail 30 "$stalled" "$stalled"
}
row_data_lost_without_report() {
  start stream "${for_ever[@]}" "${endless[@]}"
  inject lose 100 a1 && both_fail 30 "$stalled" "$stalled"
}
# Up to Linux 6.1, rxe tries for ever to send packets that exceed the MTU, within ibv_post_send. The
# calling thread then hangs in the kernel for half a minute or longer.
row_mtu_lowered_ends() {
  [[ $(uname -r) != 6.1.* ]] || { skip "$row" 'rxe of Linux 6.1 loops in the kernel'; return; }
  start bidir "${for_ever[@]}" "${plain[@]}"
  inject ip link set a1 mtu 1500 && both_fail 30 '.' '.'
}
# Like a switch with a too small MTU. Small packets arrive, so the receiver's own packets and their
# acknowledgments show no fault. Only the sender can notice it.
row_large_packets_lost_ends() {
  start stream "${for_ever[@]}" "${plain[@]}"
  inject lose_large b1 && both_fail 20 "$no_answer" '.'
}
row_address_removed_ends() {
  start bidir "${for_ever[@]}" "${plain[@]}"
  inject ip addr del 10.1.0.2/24 dev b1 && both_fail 20 "$either" "$either"
}
# One end gets an event that does not concern the connection.
row_another_address() {
  start bidir --sizes 64K --iters 500 "${quick[@]}"
  inject another_address && goes_on 60
}
row_peer_killed() {
  start stream "${for_ever[@]}" "${patient[@]}"
  inject signal_rank -KILL 1 && both_fail 10 'its process ended' ''
}
row_peer_stopped() {
  start bidir --sizes 64K --iters 500 "${endless[@]}"
  inject signal_rank -STOP 1 || return
  sleep 6 # longer than the timeout of the stall watch, which is the subject of this row
  signal_rank -CONT 1
  goes_on 60
}
row_link_deleted() {
  # The kernel takes seconds to remove the device, in an emulated machine sometimes longer than the
  # plugin's own stall timeout. This row tests the report of the device.
  start bidir "${for_ever[@]}" "${plain[@]}" --env BEELINE_STALL_TIMEOUT=50s
  # Either a completion or the device event may come first, depending on the driver.
  inject ip link del a1 && both_fail 50 "$either|was removed" "$either|was removed" || return
  until_true 10 wire_is_gone || failed 'a device still exists although its card and its users are gone'
}
row_control_on_the_same_wire_ends() {
  start bidir "${for_ever[@]}" "${plain[@]}" --env BEELINE_PEER_TIMEOUT=4s \
    --env 0:NCCL_SOCKET_IFNAME=a1 --env 1:NCCL_SOCKET_IFNAME=b1
  inject lose 100 a1 b1 && both_fail 20 "$no_answer|$cut_off" "$no_answer|$cut_off"
}
row_control_pauses() {
  start bidir --sizes 64K --iters 500 "${patient[@]}" --env BEELINE_PEER_TIMEOUT=10s
  inject lose 100 lo || return
  sleep 2 # less than the peer timeout of 10 s
  heal lo
  goes_on 60
}
# The network of the control channel is gone for longer than the peer timeout, and data moves.
row_control_returns() {
  start bidir --sizes 64K --seconds 15 "${patient[@]}" --env BEELINE_PEER_TIMEOUT=3s
  inject lose 100 lo || return
  sleep 8
  heal lo
  goes_on 60
}
row_control_lost_ends() {
  start bidir "${for_ever[@]}" "${plain[@]}" --env BEELINE_PEER_TIMEOUT=4s
  inject lose 100 lo && both_fail 20 "$cut_off" "$cut_off"
}

# --- Main -------------------------------------------------------------------------------------------

# Removes the last row's cable and its rules, and creates a new one.
new_wire() {
  local rule
  for rule in 'iif a1' 'iif b1' 'to 10.1.0.1' 'to 10.1.0.2'; do
    # shellcheck disable=SC2086  # two words
    ip rule del $rule 2>/dev/null
  done
  ip link del a1 2>/dev/null
  until_true 20 wire_is_gone && plug_in 1 && rdma_device rxe a1 b1
}
wire_is_gone() { [[ ! -e /sys/class/infiniband/rxe_a1 && ! -e /sys/class/infiniband/rxe_b1 ]]; }

judge() { # ROW
  local judged=$((checks_passed + checks_failed + checks_skipped))
  "row_$1"
  ((checks_passed + checks_failed + checks_skipped > judged)) || fail "$1" 'the row neither passed nor failed'
  end_job
  heal lo
}

((${#rows[@]} > 0)) || mapfile -t rows < <(sed -n 's/^row_\(.*\)() {$/\1/p' "${BASH_SOURCE[0]}")
load_rxe && modprobe -a sch_netem sch_ingress cls_basic em_meta act_gact || exit 2
for row in "${rows[@]}"; do
  if new_wire; then
    judge "$row"
  else
    fail "$row" 'the cable cannot be created'
  fi
done
end_of_suite
