#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command below `softnic run` in a mount namespace of its own, in which /sys/class/infiniband has the
# devices of softnic's host. NCCL's own InfiniBand code looks each device up there. The other folders of
# /sys/class stay as they are.
#   with_devices.sh COMMAND...
# Without the right to mount, it prints why and exits with 77.
set -u
if [[ $1 != --inside ]]; then
  rights=()
  ((EUID == 0)) || rights=(--map-root-user)
  if ! why=$(unshare "${rights[@]}" --mount "$0" --inside true 2>&1); then
    echo "NCCL's own code does not find softnic's devices: a mount namespace with them cannot be made: ${why//$'\n'/; }"
    exit 77
  fi
  exec unshare "${rights[@]}" --mount "$0" --inside "$@"
fi
shift
set -e
started_in=$PWD
cd /sys/class # stays the folder that is covered
folders=(*)
mount -t tmpfs tmpfs /sys/class
for folder in "${folders[@]}"; do
  [[ $folder != infiniband ]] || continue
  mkdir "/sys/class/$folder"
  mount --no-canonicalize --bind "./$folder" "/sys/class/$folder"
done
mkdir /sys/class/infiniband
for device in "$BEELINE_SYSFS_ROOT"/class/infiniband/*; do
  ln -s "$(readlink -f "$device")" "/sys/class/infiniband/${device##*/}"
done
cd "$started_in"
exec "$@"
