# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Where the driver's library and NCCL are on this machine, for scripts/gpu-check.

# linker_knows NAME : whether dlopen(NAME) would find it.
linker_knows() {
  local folder folders
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH-}"
  for folder in "${folders[@]}"; do
    [[ ! -e $folder/$1 ]] || return 0
  done
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -qF "$1 "
}

# The driver's library is not always where the linker looks: containers mount it somewhere.
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

# nccl_files : every NCCL of this machine that is not simply the linker's. Python packages bring one.
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
