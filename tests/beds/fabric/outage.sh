#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# outage.sh SOFTNIC BEELINE PLUGIN SECONDS PEER_TIMEOUT [PORT RAILS FABRIC]: the network of the control channels is
# gone for SECONDS, longer than PEER_TIMEOUT, while data moves over RDMA. The job must go on, and every byte
# must be right. With PORT, that port of one of the RAILS is down meanwhile; then each end must have left the
# path before the control channel is back.
# The job runs in a network namespace of its own, so its control channels use the lo of that namespace,
# which goes down. Exits with 77 if that is not permitted.
set -u -o pipefail

softnic=$1 beeline=$2 plugin=$3 outage=$4 peer_timeout=$5 port=${6-} rails=${7-} fabric=${8-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
unshare --net true 2>/dev/null || { echo 'no network namespace can be made: not tested'; exit 77; }

# shellcheck disable=SC2016  # the inner shell expands them
unshare --net "$softnic" run ${fabric:+--fabric "$fabric"} --name "test-outage-$$" -- bash -c '
  ip link set lo up
  "$1" perf bidir --plugin "$2" --abi v12 --hosts h0,h1 --sizes 64K --seconds "$(($3 + 5))" --log INFO \
    --env BEELINE_PEER_TIMEOUT="$4" ${7:+--env BEELINE_RAILS="$8"} >"$5" 2>&1 &
  job=$!
  until (($(grep -c "accepted .* on softnic" "$5") >= 2)); do kill -0 $job || exit 1; sleep 0.1; done
  ip link set lo down
  [[ -z $7 ]] || "$6" ctl "$7" down || exit
  sleep "$3"
  kill -0 $job || echo "the job ended during the outage"
  ip link set lo up
  wait $job' outage "$beeline" "$plugin" "$outage" "$peer_timeout" "$log" "$softnic" "$port" "$rails"
rc=$?
# For each end of the two connections, the path is out of use before the first channel is back.
left_in_time() {
  [[ -z $port ]] || (($(sed '/the control channel .* is back/q' "$log" | grep -c 'path . of . is out of use') == 4))
}
if ((rc == 0)) && grep -q '^# Wrong elements : 0 OK$' "$log" &&
  grep -q 'has lost the control channel' "$log" && left_in_time; then
  printf 'ok    control channels without a network for %s s, peer timeout %s, port down: %s\n' \
    "$outage" "$peer_timeout" "${port:-none}"
  grep -h 'control channel\|out of use' "$log" | grep -v 'listening\|is up' | sed 's/^/      /' | head -n 8
  exit 0
fi
printf 'FAIL  control channels without a network for %s s, port down: %s (exit status %d)\n' \
  "$outage" "${port:-none}" "$rc"
tail -n 100 "$log"
exit 1
