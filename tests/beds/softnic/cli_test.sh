#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the `softnic` command: exit statuses, messages, signals, nested runs, and that no files are left
# behind.
#   cli_test.sh SOFTNIC FABRICS_DIR
# Commands in single quotes are for the inner shell; functions are called through check().
# shellcheck disable=SC2016,SC2317
set -u
export softnic=$1
fabrics=$2
export name=cli-test-$$
unset SOFTNIC_FABRIC SOFTNIC_HOST NCCL_SOCKET_IFNAME
failed=0

# check WHAT WANTED_STATUS WANTED_TEXT COMMAND...: the text may be anywhere in the output.
check() {
  local what=$1 wanted_status=$2 wanted_text=$3 output status=0
  shift 3
  output=$("$@" 2>&1) || status=$?
  if [[ $status == "$wanted_status" && $output == *"$wanted_text"* ]]; then return; fi
  printf 'FAILED %s\n  status %s, wanted %s\n  output %s\n  wanted %s\n' \
    "$what" "$status" "$wanted_status" "$output" "$wanted_text"
  failed=1
}

# signalled SIGNAL: the status of a `softnic run` whose command ends with 42 on that signal, and
# with 43 if the signal comes twice.
signalled() {
  python3 - "$1" "$softnic" "$name" <<'PYTHON'
import signal, subprocess, sys
number = getattr(signal, sys.argv[1])
command = """import signal, sys, time
seen = []
signal.signal(%d, lambda *_: seen.append(1))
print("ready", flush=True)
deadline = time.time() + 20
while not seen and time.time() < deadline: time.sleep(0.01)
time.sleep(0.2)
sys.exit(41 + len(seen))""" % number
run = subprocess.Popen([sys.argv[2], "run", "--name", sys.argv[3], "--", "python3", "-c", command],
                       stdout=subprocess.PIPE)
run.stdout.readline()
run.send_signal(number)
sys.exit(run.wait())
PYTHON
}

on() { "$softnic" run --name "$name" "$@"; }

check 'no subcommand' 2 'softnic: name a subcommand: run, ls' "$softnic"
check 'a wrong subcommand' 2 '"frob" is not a subcommand; the subcommands are run, ls, ctl, log, chaos and traffic' "$softnic" frob
check 'a subcommand that is nearly one' 2 '"rnu" is not a subcommand; did you mean run? The subcommands are run, ' "$softnic" rnu
check 'a wrong option' 2 'softnic: ls has no option --nam; did you mean --name?' "$softnic" ls --nam x
check 'a wrong option of run' 2 'softnic: run has no option --hots; did you mean --host?' "$softnic" run --hots h0 -- true
check 'a missing option' 2 'softnic: chaos: --for is required; see softnic chaos --help' "$softnic" chaos
check 'its version' 0 'softnic 0.' "$softnic" --version
check 'run without --' 2 'put -- before the command' on true
check 'run without a command' 2 'no command' on
check 'a status passes through' 7 '' on -- sh -c 'exit 7'
check 'a signal is 128 and its number' 137 '' on -- sh -c 'kill -9 $$'
check 'no such command' 127 'cannot run nosuch: no such command in PATH' on -- nosuch
check 'not a program' 126 'cannot run /etc/passwd: Permission denied' on -- /etc/passwd
check 'the first host is the default' 0 'h0' on -- sh -c 'echo $SOFTNIC_HOST'
check 'the library is preloaded' 0 '/libibverbs.so' on -- sh -c 'echo $LD_PRELOAD'
check 'the interface is set if unset' 0 'lo' on -- sh -c 'echo $NCCL_SOCKET_IFNAME'
check 'the interface is kept if set' 0 'eth9' env NCCL_SOCKET_IFNAME=eth9 \
  "$softnic" run --name "$name" -- sh -c 'echo $NCCL_SOCKET_IFNAME'
check 'the sysfs root is the host'\''s' 0 'h1 softnic0' on --host h1 -- \
  sh -c 'cat $BEELINE_SYSFS_ROOT/class/infiniband/softnic0/node_desc'
check 'a wrong host' 1 'no host "h7" in fabric' on --host h7 -- true
check 'a missing file' 1 'the fabric file /nowhere: cannot be opened' on --fabric /nowhere -- true
check 'a folder is no fabric file' 1 'the fabric file /tmp: cannot be read: Is a directory' on --fabric /tmp -- true
check 'a device without an end is no fabric file' 1 'the fabric file /dev/zero: larger than 32 MiB' on \
  --fabric /dev/zero -- true
check 'a missing library' 1 'set SOFTNIC_LIB' env SOFTNIC_LIB=/nowhere "$softnic" run -- true
lone=$(mktemp -d)
mkdir "$lone/softnic" && cp "$softnic" "$lone/softnic/" && touch "$lone/build.ninja"
check 'a library that is not built' 1 "build it with: ninja -C $lone softnic/lib/libibverbs.so" \
  "$lone/softnic/softnic" run -- true
check 'a stand-in driver that is not built' 1 \
  "build it with: ninja -C $lone softnic/gpu/lib/libcuda.so.1" \
  env SOFTNIC_LIB="${softnic%/*}/lib/libibverbs.so" "$lone/softnic/softnic" run --softgpu -- true
rm -r "$lone"
check 'a file for a living fabric' 1 'is in use' on -- \
  "$softnic" run --name "$name" --fabric "$fabrics/ib-2x2.toml" -- true
check 'a nested run joins with another host' 0 'h1 /dev/shm/softnic-' on -- \
  "$softnic" run --host h1 -- sh -c 'echo $SOFTNIC_HOST $BEELINE_SYSFS_ROOT'
check 'a file describes the fabric' 0 'storage0' on --fabric "$fabrics/asymmetric.toml" -- \
  "$softnic" ls --name "$name"
check 'ls shows a port that went down' 0 'softnic0:1  down' on -- \
  sh -c '$softnic ctl h0/softnic0 down && $softnic ls --name $name'
check 'ls shows armed faults' 0 'error=retry_exc_err@5 corrupt@3 discard=64@2' on -- \
  sh -c '$softnic ctl h0/softnic0 error=retry_exc_err@5 corrupt@3 discard=64@2 && $softnic ls --name $name'
check 'ls shows what else is wrong with a port' 0 'blackhole loss=2.5% jitter=50us pkey=0x8001' on -- \
  sh -c '$softnic ctl h0/softnic0 loss=2.5% jitter=50us pkey=0x8001 blackhole
         $softnic ls --name $name'
check 'ls shows a removed device' 0 'removed refuse-err' on -- \
  sh -c '$softnic ctl h0/softnic0 refuse-err=on remove && $softnic ls --name $name'
check 'ls shows the hazards' 0 'seed 7, hazards scatter hide bunch=50us' on --fabric <(printf '%s\n' \
  'seed = 7' '[hazards]' 'scatter = true' 'hide = true' 'bunch = "50us"' \
  '[[host]]' 'name = "h0"' '[[host.device]]' 'name = "nic"') -- "$softnic" ls --name "$name"
check 'a removed device is not in sysfs' 0 'gone' on -- \
  sh -c 'test -e $BEELINE_SYSFS_ROOT/class/infiniband/softnic0 && $softnic ctl h0/softnic0 remove &&
         ! test -e $BEELINE_SYSFS_ROOT/class/infiniband/softnic0 && echo gone'
check 'the log tells commands and events' 0 'h0/softnic0:1  sent port_err to 0 open contexts' on -- \
  sh -c '$softnic ctl h0/softnic0 down && $softnic log'
check 'following the log ends with the fabric' 0 'h0/softnic0:1  loss=1%' on -- sh -c '
  mkfifo /tmp/$name.fifo
  $softnic log --follow | { read -r first; echo "$first" >/tmp/$name.fifo; cat; } &
  read -r first </tmp/$name.fifo && rm /tmp/$name.fifo && $softnic ctl h0/softnic0 loss=1%'
check 'the log outlives the fabric' 3 'h0/softnic0:1  loss=1%' sh -c '
  "$softnic" run --name "$name" --log "$0" -- sh -c "\$softnic ctl h0/softnic0 loss=1%; exit 3"
  status=$?; cat "$0"; rm "$0"; exit $status' "/tmp/$name.log"
check 'a log that cannot be written' 1 'cannot write the log to /nowhere/log: No such file' \
  on --log /nowhere/log -- true
check 'a script is played' 0 '0.1%' on -- sh -c '
  printf "%s\n" "# comment" "+1ms h0/softnic0 loss=1%" "+2ms h0/softnic0 loss=0.1%" |
    $softnic ctl --script - && $softnic ls --name $name'
check 'a script with a mistake does nothing' 0 'stdin:2: unknown command "dwon"' on -- sh -c '
  printf "%s\n" "h0/softnic0 down" "h0/softnic0 dwon" | $softnic ctl --script -
  test $? = 2 && ! $softnic ls --name $name | grep -q down'
check 'a script that is not there' 1 '/nowhere: cannot be opened' on -- "$softnic" ctl --script /nowhere
check 'a folder is no script' 1 '/tmp: cannot be read: Is a directory' on -- "$softnic" ctl --script /tmp
check 'ctl without a command' 2 'give a target and its commands' "$softnic" ctl h0/softnic0
check 'chaos says what it did' 0 'chaos: seed 7: 8 of 8 commands in 1' on -- \
  "$softnic" chaos --seed 7 --for 1s --spare h0/softnic0:1 --every 100ms
check 'chaos shows its plan' 0 '@0.157088s  h0/softnic0:1  down' on -- \
  "$softnic" chaos --seed 7 --for 1s --plan
check 'chaos that is stopped leaves the fabric clean' 0 'stopped by SIGTERM; all ports reset' on -- \
  sh -c '$softnic chaos --seed 2 --for 100s --every 2ms & chaos=$!
         until $softnic log | grep -q "remove"; do :; done
         kill -TERM $chaos; wait $chaos
         ! $softnic ls --name $name | grep -E "removed|down|loss|jitter|error|blackhole|paused|refuse"'
check 'chaos of an unknown kind' 2 '"flood" is not a kind of disturbance' on -- \
  "$softnic" chaos --for 1s --kinds flood
check 'chaos without end' 2 'is more than 1000000 of them' on -- \
  "$softnic" chaos --for 100s --every 1us
check 'ctl needs a host where names repeat' 1 'softnic0 is on h0 and h1' on -- \
  "$softnic" ctl softnic0 down
check 'ctl with a wrong command' 2 'did you mean down?' on -- "$softnic" ctl h0/softnic0 dwon
check 'ctl does all commands or none' 0 'softnic0:1  up' on -- \
  sh -c '$softnic ctl h0/softnic0 down frob; $softnic ls --name $name'
check 'ctl without the fabric' 1 "no fabric '$name'" "$softnic" ctl --name "$name" softnic0 down
check 'traffic names the ports' 0 'seconds h0/softnic0:1 h0/softnic1:1 h1/softnic0:1 h1/softnic1:1' on -- \
  "$softnic" traffic
check 'traffic says why it shows zeros' 0 'no port counts its bytes, because none has a rate' on -- \
  "$softnic" traffic
check 'traffic of a port with a rate' 0 'counted' on -- \
  sh -c '$softnic ctl h1/softnic0 rate=200M; $softnic traffic 2>&1 | grep -q "no port" || echo counted'
check 'traffic is repeated' 0 '5' on -- sh -c '$softnic traffic --every 1ms --for 3ms | wc -l'
check 'traffic needs to know how long' 2 '--every requires --for' "$softnic" traffic --every 1ms
check 'traffic without a pause' 2 '--every must be longer than 0' on -- \
  "$softnic" traffic --every 0 --for 1s
for signal in SIGINT SIGTERM SIGHUP SIGUSR1; do
  check "$signal reaches the command once" 42 '' signalled "$signal"
done
check 'a background process is not waited for' 3 '' timeout 3 "$softnic" run --name "$name" -- \
  sh -c 'sleep 6 >/dev/null 2>&1 & exit 3'
check 'ls of a fabric that is gone' 0 'no fabric' "$softnic" ls --name "$name"
if [[ -e /dev/shm/softnic-$UID-$name ]]; then
  echo "FAILED /dev/shm/softnic-$UID-$name is left"
  failed=1
fi
exit "$failed"
