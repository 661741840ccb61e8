#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs into an empty folder and searches for the plugin as NCCL does: the loader must find it by
# its file name, and must find nothing by the short name. The installation shows what to export.
#
#   install_test.sh BUILD_FOLDER LIBDIR C_CALLER
set -u -o pipefail
export LC_ALL=C
build=$1 libdir=$2 caller=$3
after_install=$(dirname "$0")/../../scripts/after_install
file=libnccl-net-beeline.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
  printf 'FAILED %s\n' "$*"
  failed=1
}

if ! meson install -C "$build" --no-rebuild --destdir "$scratch" >"$scratch/log" 2>&1; then
  cat "$scratch/log"
  fail 'meson install'
fi
[[ -f $scratch$libdir/$file ]] || fail "$libdir/$file was not installed"
none_but_ours=$(find "$scratch$libdir" -maxdepth 1 -name '*.so*' ! -name "$file" -print)
[[ -z $none_but_ours ]] || fail "installed along with it: $none_but_ours"

# meson hides what its install scripts print, as here.
shown=$(unset DESTDIR MESON_INSTALL_QUIET; MESON_INSTALL_PREFIX=/opt/x bash -c '"$1" lib >/dev/null; :' sh "$after_install")
[[ $shown == *'LD_LIBRARY_PATH=/opt/x/lib:'*NCCL_NET_PLUGIN=beeline* ]] || fail "what to export is not shown: $shown"

find_name() { LD_LIBRARY_PATH=$scratch$libdir "$caller" --find "$1"; }
find_name "$file" || fail "the loader does not find $file"
if find_name beeline; then fail 'the loader finds a library by the short name, beeline'; fi
if LD_LIBRARY_PATH='' "$caller" --find "$file"; then fail "$file is found without being installed"; fi

exit "$failed"
