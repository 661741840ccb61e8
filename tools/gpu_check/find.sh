# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Finds the driver's library and NCCL on this machine, and prints facts about the host, for
# scripts/gpu-check.

# linker_knows NAME: whether dlopen(NAME) would find it.
linker_knows() {
  local folder folders
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH-}"
  for folder in "${folders[@]}"; do
    [[ ! -e $folder/$1 ]] || return 0
  done
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -qF "$1 "
}

# The linker does not always find the driver's library, since containers mount it elsewhere.
find_driver() {
  local folder
  [[ -z ${BL_CUDA_LIB-} ]] && ! linker_knows libcuda.so.1 || return 0
  for folder in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu/nvidia/current \
    /usr/lib64/nvidia /usr/lib/wsl/lib; do
    if [[ -e $folder/libcuda.so.1 ]]; then
      export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
      return
    fi
  done
}

# nccl_files: every NCCL of this machine that the linker does not find, for example in Python packages.
nccl_files() {
  "${PYTHON:-python3}" - 2>/dev/null <<'PYTHON'
import glob, os, site, sys
for folder in dict.fromkeys(sys.path + site.getsitepackages() + [site.getusersitepackages()]):
    print(*glob.glob(os.path.join(folder or ".", "nvidia/nccl/lib/libnccl.so.2")), sep="\n")
PYTHON
  compgen -G '/usr/local/cuda*/lib64/libnccl.so.2'
  compgen -G '/opt/*/lib/libnccl.so.2'
}

find_nccl() {
  local file
  [[ -z ${NCCL_LIB-} ]] && ! linker_knows libnccl.so.2 || return 0
  file=$(nccl_files | grep -m 1 .) || return 0
  export NCCL_LIB=$file
}

# what_is_missing: a line for the driver and one for NCCL, if they are missing. If nccl_ranks is built,
# it checks this more exactly, since it loads both.
what_is_missing() {
  if [[ -n ${BL_CUDA_LIB-} ]]; then
    [[ -e $BL_CUDA_LIB ]] || echo "no NVIDIA driver: BL_CUDA_LIB=$BL_CUDA_LIB is not there"
  elif ! linker_knows libcuda.so.1; then
    echo 'no NVIDIA driver (libcuda.so.1)'
  fi
  if [[ -n ${NCCL_LIB-} ]]; then
    [[ -e $NCCL_LIB ]] || echo "no NCCL: NCCL_LIB=$NCCL_LIB is not there"
  elif ! linker_knows libnccl.so.2; then
    echo 'no NCCL (libnccl.so.2)'
  fi
}

# host_facts: the facts about this machine that the host has; nccl_ranks prints those about the GPU.
host_facts() {
  local driver mig
  driver=$(head -n 1 /proc/driver/nvidia/version 2>/dev/null)
  mig=$(nvidia-smi --id=0 --query-gpu=mig.mode.current --format=csv,noheader 2>/dev/null) ||
    mig='not known, since nvidia-smi does not say'
  printf 'kernel   %s\n' "$(uname -srm)"
  printf 'driver   %s\n' "${driver:-not known, since /proc/driver/nvidia/version is not there}"
  printf 'MIG      %s\n' "$mig"
}
