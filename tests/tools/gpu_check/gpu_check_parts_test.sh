#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests scripts/gpu-check with fakes of CUDA, NCCL, nccl-tests, mpirun and PyTorch: each fault and each
# missing program is found, named, and listed in the table.
#   gpu_check_parts_test.sh BUILD FAKE_CUDA FAKE_NCCL SCRIPT
set -u
build=$(realpath "$1") script=$4
BL_CUDA_LIB=$(realpath "$2") NCCL_LIB=$(realpath "$3")
stand_ins=$(realpath "$(dirname "$0")")/stand-ins tool=$(dirname "$4")/../tools/gpu_check
export BL_CUDA_LIB NCCL_LIB MPIRUN=$stand_ins/launch PYTHON=$stand_ins/python
export NCCL_TESTS_HOME=$stand_ins
unset "${!FAKE_@}" "${!NCCL_DEBUG@}"
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
failed=0

# check WHAT WANTED_STATUS WANTED_TEXT PARTS VARIABLE... [OPTION...]: runs these parts with these
# variables. The text may be anywhere in the output, in which runs of blanks become one and times T.
check() {
  local what=$1 wanted_status=$2 wanted_text=$3 parts=$4 status=0 output
  shift 4
  output=$(timeout 100 env "$@" "$script" --build "$build" --only "$parts" "${options[@]}" 2>&1) ||
    status=$?
  compare
}

# compare: compares the output and status of a check with what it wanted.
compare() {
  output=$(sed -E 's/ +/ /g; s/ [0-9]+\.[0-9]{3} / T /' <<<"$output")
  if [[ $status == "$wanted_status" && $output == *"$wanted_text"* ]]; then return; fi
  printf 'FAILED %s\n  status %s, wanted %s\n  output %s\n  wanted %s\n' \
    "$what" "$status" "$wanted_status" "$output" "$wanted_text"
  failed=1
}

small=(-- --most-bytes 5000 --ranks 2 --protos Simple)
options=(--results "$TMPDIR/results.md" "${small[@]}")
passed='gpu-check: PASSED, everything was right' baseline='| d | all-reduce | IB | 2.28.9 | 2 | host | right, 8 times |'
not_run="NCCL's own code does not find softnic's devices: a mount namespace with them cannot be made"
# Where the test itself may not mount, part d is not run.
BEELINE_SYSFS_ROOT=/sys "$tool/with_devices.sh" true >/dev/null || {
  passed='gpu-check: PASSED, everything that was run was right, and 1 of'
  baseline="| d | the run | IB | - | - | - | not run: $not_run"
}
check 'all is right' 0 "$passed" a,b,c,d A=1
check_results() {
  grep -qF -- "$1" "$TMPDIR/results.md" && return
  echo "FAILED no '$1' in the results:"
  cat "$TMPDIR/results.md"
  failed=1
}
check_results '| a | all-to-all | Beeline (v11) | 2.28.9 | 2 | gpudirect+flush | right, 6 times |'
check_results '| b | all_reduce_perf -c 1 | Beeline (v11) | 2.27.3 | 2 | gpudirect | right, 2 sizes |'
check_results '| c | DistributedDataParallel step | Beeline (v11) | 2.27.3 | 2 | host | right, 6 gradients'
check_results "kernel   $(uname -srm)"
check_results 'shared   compute 9.0, compute mode default, MPS yes'
check_results 'GPU_DIRECT_RDMA_WRITES_ORDERING 100 (for the owner), flush options 3 (by the host, in streams)'
check_results "$baseline"
# Parts a and c may load different NCCLs.
check_results 'NCCL     2.28.9,'
check_results 'PyTorch  2.8.0, NCCL 2.27.3'

options=("${small[@]}")
check 'a: wrong data' 1 'a all-gather Beeline (v11) 2.28.9 2 gpudirect T WRONG: 2 elements' a \
  FAKE_NCCL=corrupt
check 'a: no GPUDirect, and what ran without it does not count' 1 \
  'a all-gather Beeline (v11) 2.28.9 2 gpudirect T WRONG: not counted, see "the run"' a FAKE_NCCL=staged

options=()
check 'b: not there' 1 'all_reduce_perf is missing; build nccl-tests' b -u NCCL_TESTS_HOME
check 'b: in PATH' 0 'PASSED' b -u NCCL_TESTS_HOME "PATH=$stand_ins:$PATH"
check 'b: wrong elements are counted' 1 'WRONG: 64 bytes: 17 wrong elements' b FAKE_PERF=wrong
check 'b: fails' 1 'WRONG: it ended with status 3: host: Test NCCL failure' b FAKE_PERF=fail
check 'b: no GPUDirect' 1 'WRONG: gpudirect: rank 0: NCCL did not use GPUDirect on 1 of 1' b \
  FAKE_LOG=staged
check 'b: in a step of Slurm, with MPICH' 0 'PASSED' b SLURM_PROCID=0 PMIX_RANK=0 FAKE_LAUNCH=PMI_RANK
check 'c: no PyTorch' 1 'WRONG: no PyTorch in' c FAKE_DDP=no_torch
check 'c: gradients differ' 1 'WRONG: rank 1 of 2: gradients differ from the single-process ones' c \
  FAKE_DDP=differ
check 'c: a rank says nothing' 1 'WRONG: not every rank said that its gradients were right' c \
  FAKE_DDP=silent
check 'c: fails' 1 'WRONG: it ended with status 1: torch.distributed.DistBackendError' c FAKE_DDP=fail
check 'c: hangs' 1 'WRONG: not done after 1 s' c FAKE_DDP=hang GPU_CHECK_LIMIT_S=1
check 'c: no GPUDirect' 1 'WRONG: gpudirect: rank 0: NCCL did not use GPUDirect' c FAKE_LOG=staged

# check_stopped WHAT WANTED_TEXT PARTS VARIABLE...: the same, but the script is stopped while a fake
# hangs. The fake must then be gone.
mkfifo "$TMPDIR/ready"
check_stopped() {
  local what=$1 wanted_status=1 wanted_text=$2 parts=$3 status=0 output script_id hung_id
  shift 3
  env FAKE_READY="$TMPDIR/ready" "$@" "$script" --build "$build" --only "$parts" \
    "${options[@]}" >"$TMPDIR/output" 2>&1 &
  script_id=$!
  hung_id=$(timeout 90 cat "$TMPDIR/ready")
  kill -TERM "$script_id"
  wait "$script_id" || status=$?
  output=$(<"$TMPDIR/output")
  compare
  timeout 60 tail --pid="${hung_id:-1}" -f /dev/null && return
  echo "FAILED $what: process ${hung_id:-?} is left behind"
  failed=1
}
rm "$TMPDIR/results.md"
options=(--results "$TMPDIR/results.md" "${small[@]}")
check_stopped 'c: stopped' 'c the check - - - - - WRONG: stopped by SIGTERM here' b,c FAKE_DDP=hang
check_results '| b | all_reduce_perf -c 1 | Beeline (v11) | 2.27.3 | 2 | gpudirect | right, 2 sizes |'
check_results '| c | the check | - | - | - | - | WRONG: stopped by SIGTERM here'

options=("${small[@]}") forbidden=$TMPDIR/forbidden
mkdir "$forbidden"
printf '%s\n' '#!/bin/sh' 'echo "unshare failed: Operation not permitted" >&2; exit 1' >"$forbidden/unshare"
chmod +x "$forbidden/unshare"
check 'd: mounts are not permitted' 77 "not run: $not_run: unshare failed: Operation not permitted" d \
  "PATH=$forbidden:$PATH"
check 'd: mounts are not permitted, and something else is run' 0 \
  'PASSED, everything that was run was right, and 1 of 3 rows were not run' b,d "PATH=$forbidden:$PATH"

options=()
check 'no GPU' 77 '/nowhere/c' a,b,c,d BL_CUDA_LIB=/nowhere/c
check 'no such part' 2 "not 'e'" e A=1
options=(--results /nowhere/results.md)
check 'results cannot be written' 2 '/nowhere/results.md cannot be written' a A=1

# An NCCL that is installed as a package of PYTHON is found, too.
printf '%s\n' '#!/bin/sh' 'echo /of/my/python/libnccl.so.2' >"$TMPDIR/python"
chmod +x "$TMPDIR/python"
found=$(PYTHON=$TMPDIR/python bash -c 'source "$0"; nccl_files' "$tool/find.sh")
[[ $found == /of/my/python/libnccl.so.2* ]] || {
  echo "FAILED the NCCL of PYTHON is not found, but '$found'"
  failed=1
}

# Programs that were built on Debian 12 run with Ubuntu 22.04's C library, too. The test
# contract_exports checks the plugin.
for file in tools/gpu_check/nccl_ranks tools/gpu_check/libnet_witness.so softnic/softnic softnic/lib/libibverbs.so; do
  newest=$(readelf -VW "$build/$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [[ $(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -n 1) == GLIBC_2.28 ]] && continue
  echo "FAILED $file needs $newest, and may need GLIBC_2.28 at most"
  failed=1
done

# An nccl_ranks that dies while it reads NCCL's logs.
options=() unjudged=$TMPDIR/unjudged
mkdir -p "$unjudged/tools/gpu_check"
ln -s "$build/softnic" "$build/plugin" "$unjudged"
ln -s "$build/tools/gpu_check/libnet_witness.so" "$unjudged/tools/gpu_check"
cat >"$unjudged/tools/gpu_check/nccl_ranks" <<SCRIPT
#!/usr/bin/env bash
[[ " \$* " != *' --read-logs '* ]] || exit 9
exec '$build/tools/gpu_check/nccl_ranks' "\$@"
SCRIPT
chmod +x "$unjudged/tools/gpu_check/nccl_ranks"
build=$unjudged check 'b: nobody reads the logs' 1 'WRONG: no verdict on the logs of NCCL: nccl_ranks ended with status 9' b A=1

options=() build=$TMPDIR/newer
mkdir -p "$build/tools/gpu_check"
printf '%s\n' '#!/bin/sh' 'echo "version GLIBC_2.99 not found"; exit 1' >"$build/tools/gpu_check/nccl_ranks"
chmod +x "$build/tools/gpu_check/nccl_ranks"
check 'it does not start' 2 $'nccl_ranks does not start on this machine:\nversion GLIBC_2.99' a A=1
build=/nowhere
check 'nothing is built' 2 'is not built. meson setup /nowhere && ninja -C /nowhere gpu-check builds' a A=1
check 'nothing is built, and there is no GPU' 77 'no NVIDIA driver: BL_CUDA_LIB=/nowhere/c' a BL_CUDA_LIB=/nowhere/c
check 'nothing is built, and there is no NCCL' 77 'no NCCL: NCCL_LIB=/nowhere/n' a NCCL_LIB=/nowhere/n
exit "$failed"
