#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `beeline perf` with the fake plugin.
#   perf_test.sh PART BEELINE FAKE_PLUGIN FAKE_PLUGIN_OF_ALL_VERSIONS
# PART: command_line, clean (a correct plugin causes no errors), faults (errors of the plugin are found and
# reported), far (ranks that are started one by one).
# Functions are called by name.
# shellcheck disable=SC2317
set -u
part=$1 beeline=$2 fake=$3 fake_all=$4
unset NCCL_SOCKET_IFNAME FAKE_FAULT FAKE_DEVICES FAKE_INIT RANK OMPI_COMM_WORLD_RANK PMI_RANK SLURM_PROCID
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# expect WHAT WANTED_STATUS WANTED_TEXT COMMAND...: the text may stand anywhere in the output.
expect() {
  local what=$1 wanted_status=$2 wanted_text=$3 output status=0
  shift 3
  output=$("$@" 2>&1) || status=$?
  if [[ $status == "$wanted_status" && $output == *"$wanted_text"* ]]; then return; fi
  printf 'FAILED %s\n  status %s, wanted %s\n  output %s\n  wanted %s\n' \
    "$what" "$status" "$wanted_status" "$output" "$wanted_text"
  failed=1
}

# The mark identifies remaining processes.
perf() { timeout 60 "$beeline" perf "$@" --plugin "$fake" --env "MARK=$scratch"; }
quick=(--seconds 0.01)

command_line() {
  expect 'no subcommand' 2 'name a subcommand: perf, top' "$beeline"
  expect 'help lists patterns' 0 'multirecv' "$beeline" perf --help
  expect 'an unknown pattern' 2 '"frob" is not a pattern; the patterns are latency, stream' perf frob
  expect 'no pattern' 2 'name a pattern; ' perf
  expect 'a missing file' 2 '/nowhere.so: cannot open' "$beeline" perf rate --plugin /nowhere.so
  expect "NCCL's second name" 2 'libnccl-net-nosuch.so: cannot open' \
    "$beeline" perf rate --plugin nosuch
  expect 'a name finds its library' 0 'Wrong elements : 0 OK' \
    env LD_LIBRARY_PATH="$(dirname "$fake")" "$beeline" perf rate --plugin fake "${quick[@]}"
  expect 'not a plugin' 2 'exports none of ncclNetPlugin_v6 to ncclNetPlugin_v12' \
    "$beeline" perf rate --plugin libm.so.6
  expect 'a version it lacks' 2 'it exports v12, v8: choose one' perf rate --abi v9
  expect 'a version nobody has' 2 'there are v6 to v12' perf rate --abi v5
  expect 'a wrong device' 2 'no device eth0; there are 0 beeline_fake0, 1 beeline_fake1' \
    perf rate --dev eth0
  expect 'no devices' 2 'found no devices; --log INFO may show why. Without RDMA hardware: softnic run -- beeline perf' \
    perf rate --env FAKE_DEVICES=0
  expect 'a variable for nobody' 2 '--env 7:A=B: there is no rank 7; ranks are 0 to 1' \
    perf rate --env 7:A=B
  expect 'a variable for less than nobody' 2 'the first rank is 0' perf rate --env -1:A=B
  expect 'a variable of no rank' 2 '--env x:A=B: "x" is not a rank' perf rate --env x:A=B
  # Each error names the option, its value and valid values.
  local option value
  while read -r option value wanted; do
    expect "$option $value" 2 "$wanted" perf rate --rendezvous 127.0.0.1:9999 "$option" "$value"
  done <<'TABLE'
--ranks 1 --ranks 1: write 2 to 1024
--depth 0 --depth 0: write 1 to 32
--comms 9999 --comms 9999: write 1 to 4096
--timeout 0 --timeout 0: write 1 to 86400
--timeout 2000000000 --timeout 2000000000: write 1 to 86400
--seconds nan --seconds nan: write a time above 0, up to a day (86400)
--seconds inf --seconds inf: write a time above 0
--seconds -1 --seconds -1: write a time above 0
--seconds 0 --seconds 0: write a time above 0
--hold nan --hold nan: write 0, or a time up to a day (86400)
--hold -1 --hold -1: write 0, or a time
--rank -1 --rank -1: the first rank is 0
--rank 2 --rank 2: write 0 to 1
--iters -1 "-1" is not a whole number from 0 to
--seed -1 --seed: "-1" is not a whole number from 0 to
--seed 100000000000000000000000 is not a whole number from 0 to 18446744073709551615
TABLE
  expect 'hosts without names' 2 '--hosts ,,: an entry is empty; write h0,h1' perf rate --hosts ,,
  local port
  for port in 99999 0 -1 '' http 7x; do
    expect "port $port" 2 "127.0.0.1:$port: write HOST:PORT, with a port from 1 to" \
      perf rate --rank 1 --rendezvous "127.0.0.1:$port"
  done
  expect 'a port without a token' 2 'export BEELINE_RENDEZVOUS_TOKEN=' \
    perf rate --rank 1 --rendezvous 127.0.0.1:9999
  expect 'options in groups' 0 'Plugin, devices, memory' "$beeline" perf --help
  expect 'the version' 0 $'\nNCCL network plugin interface v6 to v12' "$beeline" --version
  expect 'the protocol' 0 $'\nProtocol between two processes: version' "$beeline" --version
  expect 'the statistics page' 0 $'\nStatistics page: version' "$beeline" --version
  expect 'memory of a kind that there is not' 2 'write host, peermem, dmabuf or mixed' \
    perf rate --memory cuda
  expect 'a flush of a kind that there is not' 2 'write auto, always or never' \
    perf rate --flush often
  # A file of that name that is not a library, even if there is a driver.
  : >"$scratch/libcuda.so.1"
  expect 'no driver' 2 'there is no GPU memory: no CUDA driver (libcuda.so.1); run where' \
    env LD_LIBRARY_PATH="$scratch" "$beeline" perf rate --plugin "$fake" --memory dmabuf
  expect 'a rank needs a place to meet' 2 'go together' perf rate --rank 0
  expect 'the devices' 0 'speed 10000 Mbit/s' perf --list
  expect 'the devices of v8' 0 'Fake (v8)' perf --list --abi v8
  expect 'a file that cannot be written' 2 '/nowhere/x: cannot be written: No such file' \
    perf rate "${quick[@]}" --json /nowhere/x
  expect 'nothing is measured before that is said' 0 '0 lines' not_measured "${quick[@]}" --json /nowhere/x
  echo old >"$scratch/old.json"
  expect 'another mistake' 2 'found no devices' perf rate --env FAKE_DEVICES=0 --json "$scratch/old.json"
  expect 'the old results are still there' 0 old cat "$scratch/old.json"
}

not_measured() { # OPTION...: how many lines of the table are printed
  echo "$(perf rate "$@" 2>&1 | grep -c '^#') lines"
}

clean() {
  local pattern ranks abi
  for pattern in latency stream rate bidir multirecv connect allreduce soak; do
    for ranks in 2 4; do
      expect "$pattern with $ranks ranks" 0 'Wrong elements : 0 OK' \
        perf "$pattern" --ranks "$ranks" "${quick[@]}" --sizes 0,5,4K,100000
    done
  done
  for abi in v6 v7 v8 v9 v10 v11 v12; do
    expect "multirecv over $abi" 0 "plugin Fake ($abi)" "$beeline" perf multirecv \
      --plugin "$fake_all" --abi "$abi" "${quick[@]}" --sizes 0,100
  done
  expect 'the newest version is the default' 0 'Fake (v12)' perf rate "${quick[@]}"
  expect 'what was compared is said' 0 '# Compared : every element of every all-reduce' \
    perf allreduce --iters 3 --sizes 8
  expect 'every message was compared' 0 '# Compared : every byte of every message' \
    perf stream --seconds 0.1 --sizes 64K --check-every
  expect 'only some patterns can compare every message' 2 'it is for stream, rate and bidir' \
    perf latency --check-every
  expect 'nothing was compared' 0 '# Compared : nothing (--no-check)' \
    perf allreduce --iters 3 --sizes 8 --no-check
  expect 'an odd rank sits out' 0 'Wrong elements : 0 OK' perf latency --ranks 3 --iters 5
  expect 'sizes that do not divide' 0 'Wrong elements : 0 OK' perf allreduce --ranks 3 \
    --comms 2 --slice 64 --sizes 1,2,3,4,13,1001 --iters 3
  expect 'flushes' 0 'Wrong elements : 0 OK' perf soak --flush always --comms 3 "${quick[@]}"
  expect 'ranks pinned to processors' 0 'Wrong elements : 0 OK' perf latency --pin "${quick[@]}"
  expect 'devices by group and rank' 0 'Wrong elements : 0 OK' perf stream --comms 3 \
    --dev fake0,fake1/beeline_fake1,0 --sizes 64 "${quick[@]}"
  expect 'the environment of one rank' 0 'rank 1: NET INFO NET/Fake' \
    perf rate "${quick[@]}" --log INFO
  expect "NCCL's variable for the log" 0 'rank 1: NET INFO NET/Fake' \
    perf rate "${quick[@]}" --env 1:NCCL_DEBUG=info
  expect 'a log that is asked for goes first' 0 'ok' quiet --log WARN --env NCCL_DEBUG=INFO
  expect 'warnings are shown in any case' 1 'NET WARN NET/Fake : told to fail' \
    perf rate --env 0:FAKE_INIT=fail --env NCCL_DEBUG=VERSION
  expect 'the pattern may come last' 0 'Wrong elements : 0 OK' \
    timeout 60 "$beeline" perf --plugin "$fake" --iters 3 --env A=B rate
  expect 'JSON' 0 ok json
  expect 'the time is kept' 0 ok time_kept
}

# --seconds is the elapsed time for each size. All patterns run at once, to save time.
time_kept() {
  local pattern
  local -A pids=()
  for pattern in latency stream rate bidir multirecv connect allreduce soak; do
    took_a_second "$pattern" &
    pids[$pattern]=$!
  done
  for pattern in "${!pids[@]}"; do wait "${pids[$pattern]}" || return; done
  echo ok
}

took_a_second() { # PATTERN
  local start
  start=$(date +%s%N)
  perf "$1" --seconds 1 --sizes 64K >"$scratch/$1" 2>&1 || return
  (($(date +%s%N) - start >= 1000000000)) && return
  echo "$1 ended before its second was over"
  return 1
}

quiet() { # OPTION...
  local said
  said=$(perf rate "${quick[@]}" "$@" 2>&1) && [[ $said != *'NET INFO'* ]] && echo ok
}

json() {
  perf allreduce --ranks 3 --sizes 7,4K --iters 4 --json "$scratch/all.json" >/dev/null &&
    perf allreduce --ranks 3 --sizes 7,4K --iters 4 --json - 2>/dev/null >"$scratch/out.json" &&
    python3 - "$scratch/all.json" "$scratch/out.json" <<'PYTHON'
import json, math, sys
for name in sys.argv[1:]:
    report = json.load(open(name))
    assert report["plugin"] == "Fake" and report["abi"] == 12 and report["wrong"] == 0
    assert report["options"]["memory"] == "host" and report["options"]["flush"] == "auto"
    assert all(not rank["flush"] and rank["gpu"] is None for rank in report["ranks"])
    assert [row["size"] for row in report["rows"]] == [7, 4096]
    assert [row["count"] for row in report["rows"]] == [1, 1024]
    for row in report["rows"]:
        assert math.isclose(row["busbw"], row["algbw"] * 4 / 3)
        for own in row["ranks"]:
            assert math.isclose(own["algbw"], row["size"] / own["time_us"] / 1e3)
        assert len(row["ranks"]) == 3 and row["ranks"][2]["iterations"] == 4
        assert row["ranks"][0]["cpu"]["thread_user_us"] >= 0
print("ok")
PYTHON
}

faults() {
  local pattern
  for pattern in stream latency multirecv; do
    expect "$pattern sees a turned bit" 1 'Wrong elements : 1 FAILED' \
      perf "$pattern" --sizes 4K --iters 2 --env 1:FAKE_FAULT=corrupt@1
  done
  # The first message may happen to be empty.
  expect 'soak sees a turned bit' 1 'Wrong elements : 1 FAILED' \
    perf soak --sizes 4K --iters 2 --seed 7 --env 1:FAKE_FAULT=corrupt@1
  expect 'allreduce sees a turned bit' 1 'elements of 4096 bytes' \
    perf allreduce --sizes 4K --iters 1 --env 1:FAKE_FAULT=corrupt@1
  # In the middle: neither the first all-reduce nor the last. With 4 MiB each is its own batch.
  local size
  for size in 4K 4M; do
    expect "every all-reduce of $size is compared" 1 ', in all-reduce ' perf allreduce \
      --sizes "$size" --slice 4M --iters 20 --env 1:FAKE_FAULT=corrupt@24
  done
  expect 'where it is' 1 'comm 0, device beeline_fake0, slot 0: 1 of 4096 bytes, the first at offset 2048' \
    perf stream --sizes 4K --iters 9 --env 1:FAKE_FAULT=corrupt@1
  expect 'the last window is compared, too' 1 'Wrong elements : 1 FAILED' \
    perf stream --sizes 4K --iters 10 --depth 2 --env 1:FAKE_FAULT=corrupt@16
  expect 'soak compares every message' 1 'Wrong elements : 1 FAILED' \
    perf soak --sizes 4K --iters 2 --seed 5 --env 1:FAKE_FAULT=corrupt@30
  expect 'data that never came' 1 'as if it had never been written' \
    perf stream --sizes 4K --iters 2 --env FAKE_FAULT=unwritten@3
  expect 'a byte outside the buffer' 1 '1 bytes outside the buffer were written' \
    perf rate --sizes 64 --depth 1 --iters 2 --env FAKE_FAULT=overrun@1
  expect 'a wrong size' 1 '4095 bytes arrived where 4096 were sent' \
    perf stream --sizes 4K --iters 2 --env FAKE_FAULT=size@2
  expect 'an error of isend' 1 'rank 0: isend, send to rank 1 on comm 0, device beeline_fake0' \
    perf rate --iters 50 --env 0:FAKE_FAULT=fail@30
  expect 'its result by name' 1 'the plugin returned ncclRemoteError (6)' \
    perf rate --iters 50 --env 0:FAKE_FAULT=fail@30
  expect 'init that fails' 1 'init: the plugin returned ncclSystemError (2)' \
    perf rate --env FAKE_INIT=fail
  expect "the plugin's own words" 1 'rank 0: NET WARN NET/Fake : told to fail' \
    perf rate --env 0:FAKE_INIT=fail
  expect 'a death' 1 'rank 0 died of signal 9 (Killed)' \
    perf rate --iters 50 --env 0:FAKE_FAULT=die@30
  expect 'a hang, and who waits' 1 'receive from rank 0 on comm 0, device beeline_fake0: 8 requests in flight' \
    perf rate --iters 50 --timeout 1 --env 0:FAKE_FAULT=stall@30
  expect 'a call that does not return' 1 'the plugin does not return from isend' \
    perf rate --iters 50 --timeout 1 --env 0:FAKE_FAULT=block@30
  expect 'nobody is left' 1 '' pgrep -f "MARK=$scratch"
}

far() {
  local rank
  for rank in 2 1; do
    perf allreduce --ranks 3 --rank "$rank" --rendezvous "$scratch/meet" --sizes 7,64K \
      --iters 3 --timeout 30 >"$scratch/$rank" 2>&1 &
  done
  expect 'ranks started one by one' 0 'Wrong elements : 0 OK' perf allreduce --ranks 3 \
    --rank 0 --rendezvous "$scratch/meet" --sizes 7,64K --iters 3 --timeout 30
  wait
  started_by_launcher() { # RANK
    local rank=$1
    shift
    SLURM_PROCID=$rank SLURM_NTASKS=3 perf allreduce --rendezvous "$scratch/launched" --sizes 7 \
      --iters 3 --timeout 30 "$@"
  }
  for rank in 2 1; do
    # RANK without WORLD_SIZE is not of torchrun.
    RANK=7 WORLD_SIZE='' started_by_launcher "$rank" >"$scratch/$rank" 2>&1 &
  done
  expect 'the launcher tells the ranks' 0 'Wrong elements : 0 OK' started_by_launcher 0
  wait
  expect 'the launcher tells something else' 2 '--ranks 2: the launcher has started 3; omit it' \
    started_by_launcher 0 --ranks 2
  expect 'nobody tells the rank' 2 'start the ranks with srun, mpirun or torchrun' \
    perf rate --rendezvous "$scratch/meet"
  perf rate --rank 1 --rendezvous "$scratch/meet" --iters 3 --timeout 30 >"$scratch/1" 2>&1 &
  expect 'other options' 1 'rank 1 was started with other options' perf rate --rank 0 \
    --rendezvous "$scratch/meet" --iters 4 --timeout 30
  wait
  expect 'the far rank is told' 0 'did not accept this rank' cat "$scratch/1"
  perf rate --rank 1 --rendezvous "$scratch/meet" --iters 50 --timeout 30 \
    --env 1:FAKE_FAULT=unwritten@1 >"$scratch/1" 2>&1 &
  expect 'wrong data on a far rank' 1 'Wrong elements : 8 FAILED' perf rate --rank 0 \
    --rendezvous "$scratch/meet" --iters 50 --timeout 30
  wait
  perf allreduce --rank 1 --rendezvous "$scratch/meet" --sizes 8 --iters 50 --timeout 1 \
    --env 1:FAKE_FAULT=block@30 >"$scratch/1" 2>&1 &
  expect 'a far rank hangs' 1 'the plugin does not return from isend' perf allreduce --rank 0 \
    --rendezvous "$scratch/meet" --sizes 8 --iters 50 --timeout 1 --env 1:FAKE_FAULT=block@30
  wait
  expect 'the far rank ends with the others' 0 'rank 1: the coordinator closed the connection' cat "$scratch/1"
  expect 'nobody comes' 1 '1 of 2 ranks did not connect to' perf rate --rank 0 \
    --rendezvous "$scratch/nobody" --timeout 1
  expect 'no address is left behind' 1 '' test -e "$scratch/nobody"
  expect 'rank 0 is not there' 1 'rank 0 has not written its address to' perf rate --rank 1 \
    --rendezvous "$scratch/nobody" --timeout 1
  expect 'strangers' 0 ok strangers
  "$(dirname "$0")/perf_strangers.py" "$scratch/slow" drip &
  expect 'a slow stranger gains nobody time' 1 'did not connect to' perf rate --rank 0 \
    --rendezvous "$scratch/slow" --timeout 1
  wait
}

# They are refused, or stay connected and send nothing; the run continues.
strangers() {
  perf rate --rank 0 --rendezvous "$scratch/town" --iters 3 --timeout 50 >"$scratch/0" 2>&1 &
  local rank_0=$! line status=0
  exec {crowd}< <(exec "$(dirname "$0")/perf_strangers.py" "$scratch/town" crowd 2>&1)
  local strangers=$!
  read -r line <&"$crowd"
  [[ $line == 'turned away' ]] || echo "$line"
  perf rate --rank 1 --rendezvous "$scratch/town" --iters 3 --timeout 20 >"$scratch/1" 2>&1 ||
    status=1
  wait "$rank_0" || status=1
  kill "$strangers"
  grep -q 'it is not a rank of this run' "$scratch/0" || status=1
  ((status == 0)) && [[ $line == 'turned away' ]] && echo ok && return
  cat "$scratch/0" "$scratch/1"
  return 1
}

case $part in
  command_line | clean | faults | far) "$part" ;;
  *) echo "no part $part"; exit 2 ;;
esac
exit "$failed"
