#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# doctor.sh BEELINE PLUGIN: makes faults on a real kernel. `beeline doctor` must name each, and the command
# that it prints must remove it. It prints none for an MTU, since that may cut a host off.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"

beeline=$1 plugin=$2
report=/run/doctor.json
export NCCL_NET_PLUGIN=$plugin

one_cable() { load_rxe && plug_in 1 && rdma_device rxe a1 b1; }

# examine [PREFIX...]: runs the doctor, with a command before it that sets limits.
examine() { "$@" timeout --kill-after=5 60 "$beeline" doctor --json --seconds "$watched" >"$report"; }
watched=0.1

# The ids of all findings that are failures or warnings.
problems() {
  python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))["findings"]
print(*sorted({f["id"] for f in found if f["severity"] in ("failure", "warning")}))' "$report"
}
# The commands that the doctor prints for a finding, one in each line.
commands() { # ID
  python3 -c '
import json, sys
print(*(f["command"] for f in json.load(open(sys.argv[1]))["findings"] if f["id"] == sys.argv[2]), sep="\n")' \
    "$report" "$1"
}

no_command() { [[ -z $(commands "$1") ]]; } # ID

healthy() { # [PREFIX...]
  examine "$@" || { cat "$report"; return 1; }
  echo "= nothing is wrong"
}

# names IDS [PREFIX...]: the doctor finds exactly these problems, and its exit status says so.
names() {
  local ids=$1 status=0
  shift
  examine "$@" || status=$?
  [[ $(problems) == "$ids" && $status == 1 ]] || { echo "exit status $status"; cat "$report"; return 1; }
  echo "= $ids"
}

# apply ID [PLACE VALUE]: runs the printed commands, after a word in capitals was replaced.
apply() {
  local command
  commands "$1" >/run/fix
  while IFS= read -r command; do
    [[ $# == 1 ]] || command=${command//$2/$3}
    printf '= %s\n' "$command"
    eval "$command" || return
  done </run/fix
}

few_files() { prlimit --pid $$ --nofile=4096:4096; }
small_mtu() { ip link set a1 mtu 1500 && ip link set b1 mtu 1500; }
one_small_mtu() { ip link set b1 mtu 1500; }
large_mtus() { ip link set a1 mtu 9000 && ip link set b1 mtu 9000; }
no_address() { ip addr flush dev b1 scope global; }
port_down() { ip link set b1 down; }
port_is_up() { until_true 30 active rxe_b1; }

# An ordinary user, with a limit that the plugin cannot raise.
limited() { prlimit --memlock="$((128 << 10)):$((128 << 10))" "${as_user[@]}" "$@"; }
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
# The same user, after the printed command was run in the shell that starts the job.
limited_and_fixed() {
  local command
  command=$(cat /run/fix)
  prlimit --memlock="$((128 << 10)):$((128 << 10))" \
    bash -c "$command && exec \"\$@\"" bash "${as_user[@]}" "$@"
}

# While data flows over a cable that loses packets, a device has to send them again.
lossy() {
  tc qdisc replace dev a1 root netem loss 5% limit 10000
  NCCL_IB_TIMEOUT=18 NCCL_SOCKET_IFNAME=lo "$beeline" perf stream --plugin "$plugin" --dev rxe_a1,rxe_b1 --sizes 64K --seconds 60 \
    >/run/job 2>&1 &
  job=$!
  until_true 60 has_retried
}
has_retried() {
  (($(</sys/class/infiniband/rxe_a1/ports/1/hw_counters/completer_retry_err) > 0 ||
    $(</sys/class/infiniband/rxe_a1/ports/1/hw_counters/rcvd_seq_err) > 0))
}
no_loss() {
  tc qdisc del dev a1 root
  kill -9 "$job"
  wait "$job" 2>/dev/null
  return 0
}

check "a cable with rxe at both ends" one_cable || end_of_suite
check "a healthy host" healthy
check "few files may be open" few_files
check "  it is named" names files-limit-low
check "  the printed command mends it" apply files-limit-low
check "  a healthy host" healthy

check "both ends get a small MTU" small_mtu
check "  it is named" names mtu-small
check "  no command is printed" no_command mtu-small
check "  both ends get a large MTU" large_mtus
check "  a healthy host" healthy
check "one end gets a small MTU" one_small_mtu
check "  it is named" names mtu-differs
check "  no command is printed" no_command mtu-differs
check "  both ends get a large MTU" large_mtus
check "  a healthy host" healthy

check "a port goes down" port_down
check "  it is named" names "no-active-port port-not-active"
check "  the printed command mends it" apply port-not-active
check "  the port comes back" port_is_up
check "  a healthy host" healthy

check "an interface loses its address" no_address
check "  it is named" names gid-only-link-local
check "  the printed command mends it" apply gid-only-link-local ADDRESS/PREFIX 10.1.0.2/24
check "  a healthy host" healthy

check "an ordinary user may lock 128 KiB" names memlock-low limited
commands memlock-low >/run/fix
check "  after the printed command: a healthy host" healthy limited_and_fixed

check "the cable loses packets" lossy
watched=5
check "  it is named" names port-errors
check "  without the loss: a healthy host" no_loss
check "  a healthy host" healthy
end_of_suite
