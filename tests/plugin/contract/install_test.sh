#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs into an empty folder and searches for the plugin as NCCL does: the loader must find it by
# its file name, and must find nothing by the short name. scripts/install shows what to export.
#
#   install_test.sh BUILD_FOLDER LIBDIR C_CALLER
set -u -o pipefail
export LC_ALL=C
build=$1 libdir=$2 caller=$3
install=$(dirname "$0")/../../../scripts/install
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

# A project without files, and a user who may not write to the terminal or file that he was given.
chmod 755 "$scratch"
mkdir "$scratch/project" "$scratch/closed"
echo "project('nothing')" >"$scratch/project/meson.build"
cp "$install" "$scratch/install"
as_nobody=()
((EUID != 0)) || as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# install_into PREFIX: sets $status and $shown.
install_into() {
  rm -rf "$scratch/tiny"
  meson setup --prefix="$1" -Dlibdir=lib "$scratch/tiny" "$scratch/project" >/dev/null || fail 'meson setup'
  ((EUID != 0)) || chown -R 65534 "$scratch/tiny"
  # The first python3 in PATH may be one that only root may run.
  "${as_nobody[@]}" env PATH="/usr/bin:/bin:$PATH" python3 "$scratch/install" "$scratch/tiny" >"$scratch/log" 2>&1
  status=$? shown=$(cat "$scratch/log")
}

mkdir -m 777 "$scratch/open"
install_into "$scratch/open"
wanted="  export LD_LIBRARY_PATH=$scratch/open/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
  export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline NCCL_NET_PLUGIN_REF_COUNT=1"
[[ $status == 0 && $(tail -n 2 <<<"$shown") == "$wanted" ]] || fail "the end is not what to export: $shown"
chmod 555 "$scratch/closed"
install_into "$scratch/closed/prefix"
[[ $status == 1 && $shown == "nothing can be installed in $scratch/closed/prefix: this user may not write to \
$scratch/closed. Run it as root, or choose another prefix:"$'\n'* ]] || fail "without rights: $shown"

find_name() { LD_LIBRARY_PATH=$scratch$libdir "$caller" --find "$1"; }
find_name "$file" || fail "the loader does not find $file"
if find_name beeline; then fail 'the loader finds a library by the short name, beeline'; fi
if LD_LIBRARY_PATH='' "$caller" --find "$file"; then fail "$file is found without being installed"; fi

exit "$failed"
