#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: run_test.sh SOFTNIC FABRIC
# `softnic run --softgpu`: a program finds softgpu in place of the driver, and only with this option.
softnic=$(realpath "$1")
fabric=$2
name=softgpu-run-$$
failed=0

# check WHAT WANTED COMMAND...: compares the first line of the output.
check() {
  what=$1
  wanted=$2
  shift 2
  got=$("$@" 2>&1 | head -n 1)
  [ "$got" = "$wanted" ] && return
  echo "FAILED: $what: \"$got\", not \"$wanted\""
  failed=1
}

folder=$(dirname "$softnic")/gpu/lib
verbs=$(dirname "$softnic")/lib
unset LD_LIBRARY_PATH
check 'its folder is there' "$verbs:$folder" \
  "$softnic" run --name "$name" --softgpu -- sh -c 'echo $LD_LIBRARY_PATH'
check 'without the option there is none' "$verbs" \
  "$softnic" run --name "$name" -- sh -c 'echo $LD_LIBRARY_PATH'
check 'a program further down has it too' "$verbs:$folder:/other" \
  env LD_LIBRARY_PATH=/other "$softnic" run --name "$name" --softgpu -- \
  "$softnic" run -- sh -c 'echo $LD_LIBRARY_PATH'
check 'the folder holds the library' libcuda.so.1 \
  "$softnic" run --name "$name" --softgpu -- \
  sh -c 'cd "${LD_LIBRARY_PATH##*:}" && echo libcuda.so.1 && test -r libcuda.so.1 || echo none'
check 'the tree says how large BAR1 is' '0x000000000014220c 128 GiB' \
  "$softnic" run --name "$name" --fabric "$fabric" -- sh -c '
    for file in $(find "$BEELINE_SYSFS_ROOT/devices" -name resource); do
      set -- $(sed -n 2p "$file")
      echo "$3 $((($2 - $1 + 1) >> 30)) GiB"
    done'
exit $failed
