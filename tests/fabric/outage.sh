#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# outage.sh SOFTNIC BEELINE PLUGIN SECONDS PEER_TIMEOUT [PORT]: the network of the control channels is gone
# for SECONDS, longer than PEER_TIMEOUT, while data moves over RDMA. The job must go on, and every byte must
# be right. With PORT, a port of one of two rails is down meanwhile; then the job must end, and say why.
# The job runs in a network namespace of its own, so its control channels use the lo of that namespace,
# which goes down. Exits with 77 if that is not permitted.
set -u -o pipefail

softnic=$1 beeline=$2 plugin=$3 outage=$4 peer_timeout=$5 port=${6-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
unshare --net true 2>/dev/null || { echo 'no network namespace can be made: not tested'; exit 77; }

# shellcheck disable=SC2016  # the inner shell expands them
unshare --net "$softnic" run --name "test-outage-$$" -- bash -c '
  ip link set lo up
  "$1" perf bidir --plugin "$2" --abi v12 --hosts h0,h1 --sizes 64K --seconds "$(($3 + 5))" --log INFO \
    --env BEELINE_PEER_TIMEOUT="$4" ${7:+--env BEELINE_RAILS=2} >"$5" 2>&1 &
  job=$!
  until (($(grep -c "accepted .* on softnic" "$5") >= 2)); do kill -0 $job || exit 1; sleep 0.1; done
  ip link set lo down
  [[ -z $7 ]] || "$6" ctl "$7" down || exit
  sleep "$3"
  [[ -n $7 ]] || kill -0 $job || echo "the job ended during the outage"
  ip link set lo up
  wait $job' outage "$beeline" "$plugin" "$outage" "$peer_timeout" "$log" "$softnic" "$port"
rc=$?
if [[ -n $port ]]; then
  if ((rc == 1)) && grep 'cannot go on: .*BEELINE_PEER_TIMEOUT' "$log" | head -n 1; then exit; fi
  printf 'FAIL  no control channel, and %s is down (exit status %d)\n' "$port" "$rc"
  tail -n 100 "$log"
  exit 1
fi
if ((rc == 0)) && grep -q '^# Wrong elements : 0 OK$' "$log" &&
  grep -q 'has lost the control channel' "$log"; then
  printf 'ok    control channels without a network for %s s, peer timeout %s\n' "$outage" "$peer_timeout"
  grep -h 'control channel' "$log" | grep -v 'listening\|is up' | sed 's/^/      /' | head -n 4
  exit 0
fi
printf 'FAIL  control channels without a network for %s s (exit status %d)\n' "$outage" "$rc"
tail -n 100 "$log"
exit 1
