#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nccl_ranks and scripts/gpu-check with stand-ins for CUDA and NCCL, on a machine that has neither:
# that right is called right, and that everything wrong is found and named.
#   gpu_check_test.sh NCCL_RANKS FAKE_CUDA FAKE_NCCL SCRIPT
set -u
ranks=$(realpath "$1") script=$4
BL_CUDA_LIB=$(realpath "$2") NCCL_LIB=$(realpath "$3")
export BL_CUDA_LIB NCCL_LIB
unset "${!FAKE_@}" "${!NCCL_DEBUG@}"
failed=0
# Any file does as a plugin: the stand-in does not load it.
sizes=(--rounds 2 --most-bytes 50000)
quick=(--plugin "$NCCL_LIB" --ranks 2 --protos LL "${sizes[@]}")

# check WHAT WANTED_STATUS WANTED_TEXT COMMAND...: the text may stand anywhere in the output.
check() {
  local what=$1 wanted_status=$2 wanted_text=$3 output status=0
  shift 3
  output=$(timeout 100 "$@" 2>&1) || status=$?
  rm -rf "$(sed -n "s/^NCCL's logs are in //p" <<<"$output")"
  if [[ $status == "$wanted_status" && $output == *"$wanted_text"* ]]; then return; fi
  printf 'FAILED %s\n  status %s, wanted %s\n  output %s\n  wanted %s\n' \
    "$what" "$status" "$wanted_status" "$output" "$wanted_text"
  failed=1
}

# broken HOW WANTED_TEXT OPTION...: with a stand-in that breaks so, the program fails and says it.
broken() {
  check "$1" 1 "$2" env FAKE_NCCL="$1" "$ranks" "${quick[@]}" "${@:3}"
}

check 'all is right' 0 '12 all-reduces verified, 0 faults: PASSED' "$ranks" "${quick[@]}"
check 'two and four ranks, three protocols' 0 '72 all-reduces verified' \
  "$ranks" --plugin "$NCCL_LIB" "${sizes[@]}"
check 'the plugin is named with its version' 0 'plugin   Beeline (v11)' "$ranks" "${quick[@]}"
check 'the environment is shown' 0 'NCCL_NET=Beeline' "$ranks" "${quick[@]}"
check 'what others set is shown, too' 0 'found    NCCL_' env NCCL_BUFFSIZE=1 "$ranks" "${quick[@]}"
check 'without a plugin, none is wanted' 0 'plugin   none loaded' \
  "$ranks" --net Socket "${sizes[@]}"
check 'warnings are shown' 0 'warning  the weather' env FAKE_NCCL=warn "$ranks" "${quick[@]}"

broken corrupt '4097 int32: 2 wrong, the first at rank 1, round 0: element 2048 of 4097 is'
broken swap '1023 float: 4 wrong, the first at rank 1, round 0: element 511 of 1023 is'
broken stale '1023 float: 2046 wrong'
broken overrun 'byte 0 past the end was written'
broken refuse 'ncclAllReduce returned 3 (internal error): the fake broke on purpose'
broken hang 'rank 1: killed, in the all-reduce of 1 float, round 0' --limit-s 5
broken crash 'rank 1: ended by signal 9 (Killed) while in the all-reduce of 1 float, round 0'
broken socket 'rank 0: NCCL used network Socket, not Beeline'
broken silent 'has no line "Using network"'
broken builtin 'has no line "Loaded net plugin Beeline (v...)"'
broken nolog 'NCCL wrote no log'
broken proto 'NCCL used protocol SIMPLE, not LL'
export FAKE_CUDA=never_ready
broken async 'the running all-reduce returned 6'
check 'a kernel that never ends' 1 'not done after 5 s' "$ranks" "${quick[@]}" --limit-s 5
export FAKE_CUDA=no_device
check 'no GPU' 77 'cuInit returned 100 (CUDA_ERROR_NO_DEVICE)' "$ranks" "${quick[@]}"
unset FAKE_CUDA
check 'no driver' 77 'no NVIDIA driver (libcuda.so.1)' env BL_CUDA_LIB=/nowhere/c "$ranks" --probe
check 'no NCCL' 77 '/nowhere/n' env NCCL_LIB=/nowhere/n "$ranks" --probe
check 'neither: both are named' 77 '/nowhere/n' \
  env BL_CUDA_LIB=/nowhere/c NCCL_LIB=/nowhere/n "$ranks" --probe
check 'NCCL dies as it is loaded' 1 'ended by signal 9' env FAKE_NCCL=die "$ranks" --probe
check 'a wrong option' 2 'ranks' "$ranks" --ranks 1

build=$(dirname "$(dirname "$(dirname "$ranks")")")
check 'the script: nothing is built' 2 'is not built' "$script" --build /nowhere
check 'the script: no GPU' 77 '/nowhere/c' env BL_CUDA_LIB=/nowhere/c "$script" --build "$build"
check 'the script: a wrong option' 2 '--build' "$script" --frob
exit "$failed"
