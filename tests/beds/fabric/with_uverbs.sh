#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# with_uverbs.sh COMMAND...: execs the command with a /dev that has the files of two RDMA devices, for
# programs that check these files before they call libibverbs. Nobody opens them. It must be called in
# a mount namespace of its own (unshare --mount).
set -eu

real=$(mktemp -d)
mount --bind /dev "$real"
mount -t tmpfs none /dev
for node in null zero full random urandom; do
  touch "/dev/$node"
  mount --bind "$real/$node" "/dev/$node"
done
mkdir /dev/shm /dev/infiniband
mount --bind "$real/shm" /dev/shm
ln -s /proc/self/fd /dev/fd
mknod /dev/infiniband/uverbs0 c 1 3 # the device of /dev/null
mknod /dev/infiniband/uverbs1 c 1 3
umount -l "$real"
rmdir "$real"
exec "$@"
