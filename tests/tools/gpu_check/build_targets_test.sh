#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs of scripts/gpu-check can be built where Catch2 and Google Benchmark are not installed, and
# scripts/demo builds all that README's commands after it run.
#   build_targets_test.sh SOURCE
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/pkg-config" <<'SCRIPT'
#!/bin/sh
case "$*" in *catch2* | *benchmark*) exit 1 ;; esac
exec pkg-config "$@"
SCRIPT
chmod +x "$work/pkg-config"
if ! said=$(PKG_CONFIG=$work/pkg-config CMAKE=/bin/false meson setup "$work/build" "$1" 2>&1); then
  echo "FAILED meson setup:"
  tail -n 20 <<<"$said"
  exit 1
fi
[[ $said == *'NO, since Catch2 is not installed'* ]] || {
  echo "FAILED Catch2 was found, so this tests nothing"
  exit 1
}
# must_build TARGET FILE...
must_build() {
  local target=$1 file planned
  planned=$(ninja -C "$work/build" -n "$target")
  for file in "${@:2}"; do
    grep -q "Linking target .*$file" <<<"$planned" && continue
    echo "FAILED ninja $target does not build $file"
    exit 1
  done
}
must_build gpu-check nccl_ranks libnet_witness.so libnccl-net-beeline.so softnic/softnic libibverbs.so
must_build demo tools/beeline libnccl-net-beeline.so softnic/softnic libibverbs.so libcuda.so.1
