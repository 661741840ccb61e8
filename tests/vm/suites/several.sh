#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# several.sh [NAME SECONDS SUITE WORD... --]...: runs suites one after another in one machine.
#
# Booting a machine takes longer than most checks. Each suite finds the machine as if it had just booted:
# processes and devices of earlier suites are gone, and only their kernel modules stay. A suite is killed
# after SECONDS. Its checks are shown as `NAME: CHECK`, and the last line is the sum of all suites. A
# suite that ends without its counts, or with an error status although no check failed, is a failure
# called NAME, and the other suites still run. A suite with exit status 77 is skipped.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"

group=/sys/fs/cgroup/suite # all processes of a suite, so that none is left behind
count_line='^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$'

# --- One suite --------------------------------------------------------------------------------------

# bounded SECONDS COMMAND...: returns its status, or 124 or 137 after a timeout. Kills all processes that
# it has started.
bounded() {
  local status=0
  (echo "$BASHPID" >"$group/cgroup.procs" && exec timeout --kill-after=5 "$@") || status=$?
  echo 1 >"$group/cgroup.kill"
  return "$status"
}

# named NAME: copies the suite's output, with NAME in front of each check. Writes the last line to
# /run/last.
named() {
  local line='' last=''
  while IFS= read -r line || [[ -n $line ]]; do
    last=$line
    if [[ $line =~ ^(ok|FAIL|skip|pass|either)(\ +)(.*)$ ]]; then
      line=${BASH_REMATCH[1]}${BASH_REMATCH[2]}$1:\ ${BASH_REMATCH[3]}
    elif [[ $line =~ $count_line ]]; then
      line="      $1: $line"
    fi
    printf '%s\n' "$line"
  done
  printf '%s' "$last" >/run/last
}

suite() { # NAME SECONDS SUITE WORD...
  local name=$1 status last
  mkdir -p "$group"
  bounded "${@:2}" 2>&1 | named "$name"
  status=${PIPESTATUS[0]} last=$(</run/last)
  if ((status == 77)); then
    skip "$name" "$last"
  elif [[ $last =~ $count_line ]]; then
    add "${BASH_REMATCH[@]:1:3}"
    ((status == 0 || BASH_REMATCH[2] > 0)) || fail "$name" "$(ending "$status" "$2")"
  else
    fail "$name" "$(ending "$status" "$2") and did not count its checks"
  fi
}

add() { # PASSED FAILED SKIPPED
  checks_passed=$((checks_passed + $1))
  checks_failed=$((checks_failed + $2))
  checks_skipped=$((checks_skipped + $3))
}

ending() { # STATUS SECONDS
  case $1 in
    124 | 137) echo "it was stopped after $2 s, or killed (exit status $1)" ;;
    *) echo "it ended with exit status $1" ;;
  esac
}

# --- Between two suites -----------------------------------------------------------------------------

# clean: removes all processes, RDMA devices, cables, rules and kernel messages of earlier suites.
clean() {
  local link
  until_true 60 no_process || return
  for link in /sys/class/infiniband/*; do
    [[ ! -e $link ]] || rdma link delete "${link##*/}" || return
  done
  for link in $(ip -oneline link show type veth | sed -nE 's/^[0-9]+: (a[0-9]+)@.*/\1/p'); do
    ip link delete "$link" || return # also deletes the other end
  done
  until_true 60 no_device || return
  while ip rule del pref 10 || ip rule del pref 20; do :; done 2>/dev/null
  if ip rule | grep '^100:' >/dev/null; then
    ip rule add pref 0 lookup local && ip rule del pref 100 || return
  fi
  tc qdisc del dev lo root 2>/dev/null
  dmesg >>/run/vm/dmesg.earlier && dmesg --clear
}
no_process() { [[ ! -e $group ]] || rmdir "$group"; } # fails while a process is in it
no_device() { ! compgen -G '/sys/class/infiniband/*'; }

while (($#)); do
  words=()
  while (($#)) && [[ $1 != -- ]]; do
    words+=("$1")
    shift
  done
  shift $(($# > 0))
  start=$SECONDS
  if clean >/run/clean 2>&1; then
    suite "${words[@]}"
    note "${words[0]}: $((SECONDS - start)) s"
  else
    fail "${words[0]}" "not started, since the machine cannot be cleaned: $(paste -sd ' ' /run/clean)"
  fi
done
end_of_suite
