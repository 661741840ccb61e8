#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh SOFTNIC BEELINE PLUGIN FABRIC_FILE SECONDS: random faults of links and devices during runs of four
# ranks with four rails each, whose control channels are cut now and then. No run may see an error or a
# wrong byte. At the end of the all-reduces every path must be in use again.
#
# The faults differ from commit to commit. BL_SOAK_SEED=N repeats those of a failure.
set -u -o pipefail

softnic=$1 beeline=$2 plugin=$3 fabric_file=$4 seconds=$5
commits=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-list --count HEAD 2>/dev/null)
seed=${BL_SOAK_SEED:-${commits:-1}}
quiet=15 # seconds without faults at the end; up to 5 s pass between two attempts to connect a path
failed=0
log=$(mktemp) cuts=$(mktemp)
trap 'rm -f "$log" "$cuts"' EXIT

# The control channels are those of a network namespace of their own, where they can be found and cut
# from outside. If that is not permitted, they stay whole, and each result says so.
isolated=(unshare --net bash -c 'ip link set lo up && exec "$@"' isolated)
"${isolated[@]}" true 2>/dev/null || isolated=()

# in_chaos OPTION...: `beeline perf`, with a fault about every 150 ms. They begin when all ranks have
# found their devices, because a port that is down then is not used.
in_chaos() {
  # shellcheck disable=SC2016  # the inner shell expands them
  "${isolated[@]}" "$softnic" run --name "test-soak-$$-$RANDOM" --fabric "$fabric_file" -- bash -c '
    RANDOM=$4 cuts=$7
    cut_channels() {
      while sleep "$((RANDOM % 2)).$((RANDOM % 10))"; do
        ss --kill --no-header --tcp state established dst 127.0.0.1 >>"$cuts" 2>/dev/null || return
      done
    }
    "$1" perf --plugin "$2" --abi v12 --rails 4 --ranks 4 --log INFO "${@:9}" >"$6" 2>&1 &
    job=$!
    while kill -0 $job && (($(grep -c "merged into device" "$6") < 4)); do sleep 0.1; done
    (($8 == 0)) || cut_channels &
    cut=$!
    "$3" chaos --seed "$4" --for "$5" --every 150ms \
      --kinds down,blackhole,pause,loss,jitter,event,remove,refuse-err,path-error
    kill $cut 2>/dev/null
    wait $job' chaos "$beeline" "$plugin" "$softnic" "$seed" "${seconds}s" "$log" "$cuts" \
    "${#isolated[@]}" "$@"
}

# Lines of the log about paths, as "end and path<tab>news".
path_news() {
  sed -nE 's/^(.*: path [0-9]+) of [0-9]+ is (out of use|in use again).*/\1\t\2/p'
}

# soak PATTERN OPTION...: one run.
soak() {
  local pattern=$1 rc=0 lost=0 left='' cut='not cut'
  : >"$cuts"
  in_chaos "$@" || rc=$?
  lost=$(path_news <"$log" | grep -c 'out of use')
  ((${#isolated[@]} == 0)) || cut="$(wc -l <"$cuts") of their sockets closed"
  # In the pattern soak, connections are closed while a path is out of use.
  [[ $pattern == soak ]] || left=$(path_news <"$log" | awk -F '\t' '
    { news[$1] = $2 } END { for (path in news) if (news[path] == "out of use") print path }')
  if ((rc == 0 && lost > 0)) && [[ -z $left ]] && grep -q '^# Wrong elements : 0 OK$' "$log"; then
    printf 'ok    %s: seed %s, paths lost %d times, control channels: %s\n' "$pattern" "$seed" "$lost" "$cut"
    return
  fi
  printf 'FAIL  %s: seed %s, paths lost %d times, control channels: %s (exit status %d)\n' \
    "$pattern" "$seed" "$lost" "$cut" "$rc"
  printf 'still out of use: %s\n' "$left"
  tail -n 300 "$log"
  failed=1
}

sizes=(0 7 4K 65537 131073 1000001 4M)
per_size=$(awk "BEGIN { print ($seconds + $quiet) / ${#sizes[@]} }")
soak allreduce --sizes "$(IFS=, && echo "${sizes[*]}")" --seconds "$per_size"
soak soak --seed "$seed" --seconds "$seconds"
exit $failed
