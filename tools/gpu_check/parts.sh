# shellcheck shell=bash disable=SC2154  # scripts/gpu-check has set what it uses
# SPDX-License-Identifier: Apache-2.0
#
# The parts of scripts/gpu-check, which sources this file and sets: ranks, plugin, witness, softnic (the
# files), net, rows (the file of the table), work (a folder for logs), options (of parts a and d). Each
# part prints what it does, and adds its rows to the table. A row whose result begins with WRONG is a
# failure.

two=2                          # ranks of third-party programs
limit_s=${GPU_CHECK_LIMIT_S:-300} # for each of their runs

# row PART WHAT NETWORK NCCL RANKS MEMORY RESULT SECONDS
row() {
  local IFS=$'\t'
  printf '%s\n' "$*" >>"$rows"
}

# over NET COMMAND...: runs the command, with softnic's devices if the network needs some.
over() {
  local net=$1 show=()
  shift
  [[ $net != IB ]] || show=(tools/gpu_check/with_devices.sh)
  if [[ $net == Socket ]]; then
    "$@"
  else
    "$softnic" run --name "gpu-check-$$" --fabric tools/gpu_check/two-hosts.toml -- "${show[@]}" "$@"
  fi
}

# plugin_options NET: sets the array `of_net` to the options of nccl_ranks for this network.
plugin_options() {
  of_net=(--net "$1")
  [[ $1 != Beeline ]] || of_net+=(--plugin "$(realpath "$plugin")")
}

# take_operations PART: moves the rows that nccl_ranks has written so far into the table.
take_operations() {
  [[ -e $work/rows-$1 ]] || return 0
  sed "s/^/$1\t/" "$work/rows-$1" >>"$rows"
  rm "$work/rows-$1"
}

# run_operations PART NET OPTION...: runs the collectives, send and receive with nccl_ranks.
run_operations() {
  local part=$1 net=$2 of_net command why status=0
  shift 2
  [[ $net != IB ]] || why=$(over IB true 2>&1) || status=$?
  if ((status == 77)); then # of with_devices.sh
    echo "$why"
    row "$part" "the run" "$net" - - - "not run: $(tail -n 1 <<<"$why" | cut -c 1-200)" -
    return
  fi
  status=0
  plugin_options "$net"
  [[ $net != Beeline ]] || of_net+=(--witness "$(realpath "$witness")")
  command=("$ranks" "${of_net[@]}" --rows "$work/rows-$part" "$@")
  printf 'command  %s\n' "${command[*]@Q}"
  TMPDIR=$work over "$net" "${command[@]}" || status=$?
  take_operations "$part"
  if ((status != 0)) && ! grep -q "^$part.*WRONG" "$rows"; then
    row "$part" "the run" "$net" - - - "WRONG: nccl_ranks ended with status $status" -
  fi
}

part_a() {
  section "a. operations over $net, every element checked"
  run_operations a "$net" "${options[@]}"
}

part_d() {
  section "d. baseline: the same over NCCL's own InfiniBand code, on softnic"
  run_operations d IB "${options[@]}"
}

# memories_of NET: the kinds of memory with which third-party programs run.
memories_of() {
  echo host
  [[ $1 != Beeline ]] || echo gpudirect
}

# forget_rank: unsets variables with a rank, which the launcher of this script may have set, for example
# Slurm. The launchers that it starts set their own, maybe under another name.
forget_rank() { unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID; }

# launched PART WHAT MEMORY JUDGE COMMAND...: runs a third-party program whose ranks are started through
# `nccl_ranks --`. JUDGE OUTPUT STATUS prints "right..." or "WRONG: ..." about its output. NCCL's log is
# checked, too.
launched() {
  local part=$1 what=$2 memory=$3 judge=$4 output result status=0 start=${EPOCHREALTIME/./}
  local judged=0 nccl network fault
  local logs=$work/$part-$memory
  shift 4
  output=$logs/output
  printf '\n%s, %s\ncommand  %s\n' "$what" "$memory" "${*@Q}"
  over "$net" timeout --kill-after=10 "$limit_s" "$@" >"$output" 2>&1 || status=$?
  sed 's/^/  /' "$output"
  "$ranks" "${of_net[@]}" --ranks "$two" --memory "$memory" --logs "$logs" --read-logs \
    >"$logs/judged" 2>&1 || judged=$?
  cat "$logs/judged"
  nccl=$(sed -n 's/^nccl  *\([0-9].*\)/\1/p' "$logs/judged")
  network=$(sed -n -e 's/^plugin *\([^ ].*(v.*\)/\1/p' -e 's/^network *//p' "$logs/judged" |
    grep -v '^not said$' | tail -n 1)
  result=$("$judge" "$output" "$status")
  if [[ $result != WRONG* ]] && ((judged != 0)); then
    fault=$(sed -n "s/^  $two ranks, //p" "$logs/judged" | head -n 1)
    result="WRONG: ${fault:-no verdict on the logs of NCCL: nccl_ranks ended with status $judged}"
  fi
  row "$part" "$what" "${network:--}" "${nccl:--}" "$two" "$memory" "$result" "$(seconds_since "$start")"
}

# seconds_since MICROSECONDS
seconds_since() {
  local took=$((${EPOCHREALTIME/./} - $1))
  printf '%d.%03d' $((took / 1000000)) $((took / 1000 % 1000))
}

# died OUTPUT STATUS: the result of a program that failed without a verdict of its own.
died() {
  if (($2 == 124 || $2 == 137)); then
    echo "WRONG: not done after $limit_s s"
  else
    echo "WRONG: it ended with status $2: $(grep . "$1" | tail -n 1 | cut -c 1-200 | tr '\t|' '  ')"
  fi
}

# --- b: nccl-tests --------------------------------------------------------------------------------

# Without MPI, nccl-tests is one process whose threads use a GPU each. Several ranks on one GPU, each with
# its own host id, need processes of mpirun.
find_all_reduce_perf() {
  local home=${NCCL_TESTS_HOME-} name file
  for name in all_reduce_perf_mpi all_reduce_perf; do
    for file in ${home:+"$home/build/$name" "$home/$name"}; do
      [[ ! -x $file ]] || { echo "$file"; return; }
    done
    if [[ -z $home ]] && command -v "$name"; then return; fi
  done
}

judge_nccl_tests() {
  local said
  if said=$(python3 tools/gpu_check/judge_nccl_tests.py "$1" "$two" 2>&1); then
    if (($2 == 0)); then echo "$said"; else died "$@"; fi
  elif [[ $said == *'without MPI'* || $said == *'wrong'* ]] || (($2 == 0)); then
    echo "$said" | tail -n 1
  else
    died "$@"
  fi
}

# Keeps Open MPI from using softnic's devices itself, from requiring a processor for each rank, and from
# refusing to run as root.
mpi_on_this_machine() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo UCX_TLS=self,tcp
  export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  export NCCL_TESTS_DEVICE=0 # for all ranks; by default each process of a host uses another GPU
  if [[ -n ${NCCL_LIB-} ]]; then
    LD_LIBRARY_PATH=$(dirname "$(realpath "$NCCL_LIB")")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
  fi
}

part_b() (
  what='all_reduce_perf -c 1'
  section "b. nccl-tests: $what"
  perf=$(find_all_reduce_perf)
  mpirun=$(command -v "${MPIRUN:-mpirun}")
  missing=
  if [[ -z $perf ]]; then
    missing="all_reduce_perf is missing${NCCL_TESTS_HOME:+ in $NCCL_TESTS_HOME}; build nccl-tests with\
 make MPI=1, and set NCCL_TESTS_HOME to its folder"
  elif [[ -z $mpirun ]]; then
    missing="${MPIRUN:-mpirun} is missing, which makes the ranks of nccl-tests; install Open MPI, or set\
 MPIRUN"
  elif ! command -v python3 >/dev/null; then
    missing='python3 is missing, which reads the output of nccl-tests'
  fi
  if [[ -n $missing ]]; then
    echo "$missing"
    row b "$what" - - "$two" - "WRONG: $missing" -
    return
  fi
  mpi_on_this_machine
  forget_rank
  plugin_options "$net"
  for memory in $(memories_of "$net"); do
    mkdir -p "$work/b-$memory"
    launched b "$what" "$memory" judge_nccl_tests "$mpirun" -np "$two" "$ranks" "${of_net[@]}" \
      --memory "$memory" --logs "$work/b-$memory" -- "$perf" -b 8 -e 4M -f 8 -g 1 -c 1 -n 5 -w 1
  done
)

# --- c: PyTorch -----------------------------------------------------------------------------------

judge_ddp() {
  local wrong
  wrong=$(sed -n 's/.*ddp: \(rank [0-9]* of [0-9]*\): WRONG: /WRONG: \1: /p' "$1" | head -n 1)
  if [[ -n $wrong ]]; then
    echo "$wrong"
  elif (($2 == 0)) && (($(grep -c 'ddp: rank [0-9]* of [0-9]*: right' "$1") == two)); then
    sed -n 's/.*ddp: rank 0 of [0-9]*: right: /right, /p' "$1" | head -n 1
  elif (($2 == 0)); then
    echo "WRONG: not every rank said that its gradients were right"
  else
    died "$@"
  fi
}

part_c() (
  what='DistributedDataParallel step'
  section "c. PyTorch: $what"
  python=${PYTHON:-python3}
  if ! command -v "$python" >/dev/null; then
    row c "$what" - - "$two" - "WRONG: $python is missing; set PYTHON to a Python that has PyTorch" -
    return
  fi
  if ! found=$("$python" tools/gpu_check/ddp_step.py --probe 2>&1); then
    found=$(tail -n 1 <<<"$found")
    echo "$found"
    row c "$what" - - "$two" - "WRONG: ${found#ddp: }" -
    return
  fi
  echo "$found"
  printf 'PyTorch  %s\n' "${found#PyTorch }" >"$work/pytorch"
  forget_rank
  plugin_options "$net"
  for memory in $(memories_of "$net"); do
    mkdir -p "$work/c-$memory"
    # Without an address, torchrun resolves the full name of its host, which may fail. Without the first
    # "--", it takes the options of nccl_ranks for abbreviations of its own.
    launched c "$what" "$memory" judge_ddp "$python" -m torch.distributed.run --standalone \
      --local_addr 127.0.0.1 --nproc_per_node "$two" --no_python -- "$ranks" "${of_net[@]}" --memory "$memory" \
      --logs "$work/c-$memory" -- "$python" tools/gpu_check/ddp_step.py
  done
)
