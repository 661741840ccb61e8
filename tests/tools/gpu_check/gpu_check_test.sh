#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests nccl_ranks with a fake CUDA and a fake NCCL, on a machine that has neither: right results pass,
# and every injected fault is found and named.
#   gpu_check_test.sh NCCL_RANKS FAKE_CUDA FAKE_NCCL WITNESS PLUGIN
set -u
ranks=$(realpath "$1") witness=$(realpath "$4") plugin=$(realpath "$5")
BL_CUDA_LIB=$(realpath "$2") NCCL_LIB=$(realpath "$3")
export BL_CUDA_LIB NCCL_LIB
unset "${!FAKE_@}" "${!NCCL_DEBUG@}"
failed=0
sizes=(--rounds 2 --most-bytes 50000)
reduce=(--ops all-reduce --memory host)
# Without the witness any file can be the plugin, since the fake NCCL finds no table in it.
quick=(--plugin "$NCCL_LIB" --ranks 2 --protos LL "${reduce[@]}" "${sizes[@]}")
direct=(--plugin "$plugin" --witness "$witness" --ranks 2 "${sizes[@]}")

# check WHAT WANTED_STATUS WANTED_TEXT COMMAND...: the text may be anywhere in the output.
check() {
  local what=$1 wanted_status=$2 wanted_text=$3 output status=0
  shift 3
  output=$(timeout 100 "$@" 2>&1) || status=$?
  rm -rf "$(sed -n "s/^NCCL's logs are in //p" <<<"$output")"
  if [[ $status == "$wanted_status" && $output == *"$wanted_text"* ]]; then return; fi
  printf 'FAILED %s\n  status %s, wanted %s\n  output %s\n  wanted %s\n' \
    "$what" "$status" "$wanted_status" "$output" "$wanted_text"
  failed=1
  return 1
}

# broken FAULT WANTED_TEXT OPTION...: with this fault in the fake NCCL, the program fails and names it.
broken() {
  check "$1" 1 "$2" env FAKE_NCCL="$1" "$ranks" "${quick[@]}" "${@:3}"
}

check 'two and four ranks, three protocols' 0 '72 operations verified' \
  "$ranks" --plugin "$NCCL_LIB" --protos Simple,LL,LL128 "${reduce[@]}" "${sizes[@]}"
check 'all operations, from all memory' 0 '220 operations verified, 0 faults: PASSED' \
  "$ranks" "${direct[@]}"
check 'the witness has counted' 0 'registered 4 times as a dma-buf, 0 by address; 88 flushes' \
  "$ranks" "${direct[@]}" --memory gpudirect,gpudirect+flush --protos Simple
check 'warnings are shown' 0 'warning  the weather' env FAKE_NCCL=warn "$ranks" "${quick[@]}"

broken corrupt '4097 int32: 2 wrong, the first at rank 1, round 0: element 2048 of 4097 is'
broken stale '1023 float: 2046 wrong'
broken overrun 'byte 0 past the end was written'
broken underrun 'byte 255 of the guard before the data was written'
broken corrupt 'all-to-all of 1023 float: 4 wrong, the first at rank 1, round 0: element 511 of 2046' \
  --ops all-to-all
broken socket 'rank 0: NCCL used network Socket, not Beeline'
broken silent 'has no line "Using network"'
broken proto 'NCCL used protocol SIMPLE, not LL'
broken direct 'NCCL used GPUDirect on 1 of 2 connections, and should have used none'

# Each of these waits for a rank, so they run in parallel.
broken refuse 'ncclAllReduce returned 3 (internal error): the fake broke on purpose' &
broken crash 'rank 1: ended by signal 9 (Killed) while in the all-reduce of 1 float, round 0' &
broken hang 'rank 1: killed, in the all-reduce of 1 float, round 0' --limit-s 5 &
FAKE_CUDA=never_ready check 'a kernel that never ends' 1 'not done after 5 s' \
  "$ranks" "${quick[@]}" --limit-s 5 &
for job in $(jobs -p); do wait "$job" || failed=1; done

# gpu FAULT WANTED_TEXT OPTION...: the same, with GPU memory, the plugin and the witness.
gpu() {
  check "$1" 1 "$2" env FAKE_NCCL="$1" "$ranks" "${direct[@]}" --protos Simple --ops all-gather "${@:3}"
}
gpu staged 'rank 0: NCCL did not use GPUDirect on 1 of 2 connections, though asked for it' \
  --memory gpudirect
gpu noflush 'rank 1: NCCL asked for no flush, in spite of NCCL_NET_FORCE_FLUSH=1' \
  --memory gpudirect+flush
gpu noreg 'rank 0: NCCL gave the plugin no GPU memory, in spite of GPUDirect' --memory gpudirect
check 'the witness finds no table to forward to' 1 'the plugin has no such table' \
  "$ranks" "${quick[@]}" --witness "$witness"
export FAKE_CUDA=never_ready
broken async 'the running operation returned 6'
export FAKE_CUDA=no_device
check 'no GPU' 77 'cuInit returned 100 (CUDA_ERROR_NO_DEVICE)' "$ranks" "${quick[@]}"
unset FAKE_CUDA
check 'processes may not share the GPU' 0 'compute mode exclusive: the ranks cannot share the GPU' \
  env FAKE_CUDA=exclusive "$ranks" --probe
check 'a driver that does not know all attributes' 0 'DMA_BUF_SUPPORTED not known to this driver' \
  env FAKE_CUDA=old "$ranks" --probe
check 'neither driver nor NCCL' 77 '/nowhere/n' \
  env BL_CUDA_LIB=/nowhere/c NCCL_LIB=/nowhere/n "$ranks" --probe
check 'a wrong option' 2 'ranks' "$ranks" --ranks 1

# Other programs that nccl_ranks runs as ranks.
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
be_rank=("$ranks" --plugin "$plugin" --memory gpudirect --logs "$logs" --)
# shellcheck disable=SC2016  # for another shell
check 'variables that work around limits of NCCL and CUDA' 0 'set 1 0' env RANK=0 "${be_rank[@]}" sh -c \
  'echo "set $NCCL_NET_PLUGIN_REF_COUNT $NCCL_GIN_ENABLE"'
# shellcheck disable=SC2016  # for another shell
check 'a rank of mpirun' 0 "gpu-check-3 SYS $plugin $logs/rank3.log -" \
  env OMPI_COMM_WORLD_RANK=3 "${be_rank[@]}" sh -c \
  'echo "$NCCL_HOSTID $NCCL_NET_GDR_LEVEL $NCCL_NET_PLUGIN $NCCL_DEBUG_FILE ${NCCL_PROTO-}-"'
check 'no rank' 1 'start it by mpirun, srun or torchrun' \
  env -u RANK -u SLURM_PROCID -u PMI_RANK -u PMIX_RANK "${be_rank[@]}" true
check 'logs that are not there' 1 'rank 0: NCCL wrote no log' \
  "$ranks" --ranks 2 --logs "$logs" --read-logs
exit "$failed"
