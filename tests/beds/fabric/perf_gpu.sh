#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# perf_gpu.sh SOFTNIC BEELINE PLUGIN GROUP: runs the plugin under `beeline perf` with buffers in the
# memory of softgpu's GPUs. A process that dereferences their addresses is killed. Groups:
#   versions    versions of the interface that treat GPU memory differently; both kinds of registration
#   patterns    all the others, one kind at each end
#   hidden      a GPU that sees received data only after a flush: without one the data is wrong
#   copies      memory that softnic cannot map and copies with calls of the driver
#   refused     missing support is reported before anything is sent
set -u -o pipefail

softnic=$1 beeline=$2 plugin=$3 group=$4
name=test-perf-gpu-$$-$RANDOM
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset SOFTGPU CUDA_VISIBLE_DEVICES NCCL_NET_FORCE_FLUSH
failed=0

cat >"$scratch/plain.toml" <<'TOML'
[[host]]
name = "h[0-1]"
[[host.device]]
name = "softnic0"
[[host.gpu]]
name = "gpu[0-1]"
TOML
# Flushes are slow on this fabric, so that a missing wait for one is noticed.
{
  printf '[hazards]\nhide = true\n'
  sed 's/^name = "softnic0"$/&\nlatency = "2ms"/' "$scratch/plain.toml"
} >"$scratch/hide.toml"

# expect WHAT STATUS LINE FABRIC OPTION...: one run with this exit status, whose output must have a line
# that matches LINE. If it fails, prints the output.
expect() {
  local what=$1 wanted=$2 line=$3 fabric=$4 log rc=0
  shift 4
  log=$("$softnic" run --softgpu --name "$name" --fabric "$scratch/$fabric.toml" -- \
    timeout 60 "$beeline" perf "$@" --hosts h0,h1 --plugin "$plugin" 2>&1) || rc=$?
  if ((rc == wanted)) && grep -qE "$line" <<<"$log"; then
    printf 'ok    %s\n' "$what"
  else
    printf 'FAIL  %s (exit status %d, wanted %d with "%s")\n%s\n' "$what" "$rc" "$wanted" "$line" "$log"
    failed=1
  fi
}

all_right='^# Wrong elements : 0 OK$'
all_reduce=(allreduce --iters 2 --sizes "0,1,7,4K,65537")

versions() {
  local abi memory
  for abi in v6 v8 v12; do
    expect "mixed over $abi" 0 "$all_right" plain "${all_reduce[@]}" --abi "$abi" --memory mixed
  done
  for memory in dmabuf peermem; do
    expect "$memory over v12" 0 "$all_right" plain "${all_reduce[@]}" --abi v12 --memory "$memory"
  done
  expect 'four ranks, two on a GPU' 0 "$all_right" plain "${all_reduce[@]}" --ranks 4 --comms 2 \
    --memory mixed
  expect 'the report says which memory' 0 'Rank  1 .* GPU 1 0000:15:00.0 softgpu by peermem, flushed' \
    plain rate --iters 3 --memory mixed --flush always
  expect 'JSON' 0 '"gpu": null' plain rate --iters 3 --json -
  expect 'JSON of a GPU' 0 '"pci": "0000:13:00.0"' plain rate --iters 3 --json - --memory dmabuf
}

patterns() {
  local pattern
  for pattern in latency stream rate bidir multirecv connect soak; do
    expect "$pattern" 0 "$all_right" plain "$pattern" --comms 2 --seconds 0.1 --sizes 0,100,64K \
      --memory mixed --flush always
  done
}

# hidden_run WHAT STATUS LINE GPU OPTION...: GPU is compute=N. Writes of the NIC are not ordered, and only
# a READ through the NIC makes them visible.
hidden_run() {
  local what=$1 wanted=$2 line=$3 gpu=$4
  shift 4
  SOFTGPU=$gpu,ordering=none,flush=none \
    expect "$what" "$wanted" "$line" hide stream --iters 3 --sizes 7,64K "$@"
}

hidden() {
  local wrong='^# Wrong elements : [1-9][0-9]* FAILED$' memory abi
  for memory in dmabuf peermem; do
    hidden_run "$memory, never flushed" 1 "$wrong" compute=8.0 --memory "$memory" --flush never
    hidden_run "$memory, always flushed" 0 "$all_right" compute=8.0 --memory "$memory" --flush always
  done
  # Up to Ampere NCCL flushes by itself; on later GPUs if the plugin or the user requests it.
  hidden_run 'Ampere, as NCCL does' 0 "$all_right" compute=8.0 --memory mixed
  for abi in v9 v12; do
    hidden_run "Hopper over $abi, the plugin asks for flushes" 0 "$all_right" compute=9.0 --abi "$abi" \
      --memory mixed
  done
  hidden_run 'Hopper over v8, the plugin flushes by itself' 0 "$all_right" compute=9.0 --abi v8 \
    --memory mixed
  # CUDA reports that no flush is needed, which is wrong on this fabric.
  expect 'nobody asks for flushes' 1 "$wrong" hide stream --iters 3 --sizes 64K --memory mixed
  expect 'the user does' 0 "$all_right" hide stream --iters 3 --sizes 64K --memory mixed \
    --env NCCL_NET_FORCE_FLUSH=1
}

copies() {
  local memory
  for memory in dmabuf peermem mixed; do
    SOFTGPU=nic=copies expect "$memory" 0 "$all_right" plain "${all_reduce[@]}" --memory "$memory"
  done
  SOFTGPU=nic=copies expect 'over v8, always flushed' 0 "$all_right" plain "${all_reduce[@]}" \
    --abi v8 --memory mixed --flush always
  SOFTGPU=nic=copies expect 'four ranks, two on a GPU' 0 "$all_right" plain "${all_reduce[@]}" \
    --ranks 4 --comms 2 --memory mixed
  SOFTGPU=nic=copies expect 'several receives at once' 0 "$all_right" plain multirecv --comms 2 \
    --seconds 0.1 --sizes 0,100,64K --memory mixed
}

refused() {
  local run=(plain rate --iters 3 --memory)
  SOFTGPU=gpus=0 expect 'no GPU' 2 'no GPU memory: the CUDA driver sees no GPU here; .* with SOFTGPU=gpus=2' \
    "${run[@]}" dmabuf
  SOFTGPU=dmabuf=no expect 'no dma-bufs' 2 'cannot export its memory as dma-bufs.* or choose --memory peermem' \
    "${run[@]}" dmabuf
  SOFTGPU=dmabuf=no expect 'no dma-bufs, and none needed' 0 "$all_right" "${run[@]}" peermem
  SOFTGPU=gdr=no expect 'no GPUDirect' 2 'does not support GPUDirect RDMA' "${run[@]}" peermem
  SOFTGPU=peermem=no,dmabuf=no expect 'a plugin that takes neither' 2 \
    'device beeline_softnic0 supports only host memory, not peermem: .*modprobe nvidia-peermem' \
    "${run[@]}" peermem
}

case $group in
  versions | patterns | hidden | copies | refused) "$group" ;;
  *) printf 'no group %s\n' "$group" && exit 2 ;;
esac
exit $failed
