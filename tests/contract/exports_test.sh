#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the plugin's file shows and needs: it is a guest in other people's programs.
#
#   exports_test.sh PLUGIN VERSION...    versions of the table that must be there
#
# Prints the newest version of glibc that it needs.
set -u -o pipefail
export LC_ALL=C
plugin=$1
shift
# What the unwinder in Debian 12's libgcc.a needs; whoever has an older glibc builds there.
newest_allowed=2.35
failed=0

# wrong WHAT TEXT
wrong() {
  printf 'FAILED %s:\n%s\n' "$1" "$2"
  failed=1
}

# none WHAT TEXT : the text has to be empty.
none() { [[ -z $2 ]] || wrong "$1" "$2"; }

[[ -f $plugin ]] || {
  echo "FAILED: no file $plugin"
  exit 1
}

exported=$(nm -D --defined-only "$plugin" | awk '{ print $NF }' | sed 's/@.*//' | sort -u)
echo "exports: ${exported//$'\n'/ }"
none 'exported, but no table' "$(grep -vxE 'ncclNetPlugin_v[0-9]+' <<<"$exported")"
for version in "$@"; do
  grep -qx "ncclNetPlugin_v$version" <<<"$exported" ||
    wrong 'a table is missing' "ncclNetPlugin_v$version"
done

needed=$(readelf -dW "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
echo "needs: ${needed//$'\n'/ }"
none 'libraries that a guest must not bring' \
  "$(grep -vxE 'libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2' <<<"$needed")"
loaded=$(ldd "$plugin" | awk '{ print $1 }' | sed 's,.*/,,')
none 'libraries that come along' \
  "$(grep -vxE 'libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2|linux-vdso\.so\.1' <<<"$loaded")"

newest=$(readelf -VW "$plugin" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
echo "newest glibc needed: $newest"
[[ $(printf '%s\n' "$newest" "$newest_allowed" | sort -V | tail -n 1) == "$newest_allowed" ]] ||
  wrong "needs a glibc newer than $newest_allowed" \
    "$(nm -D --undefined-only "$plugin" | grep "GLIBC_$newest")"

flags=$(readelf -dW "$plugin" | grep -E 'FLAGS')
grep -q NODELETE <<<"$flags" || wrong 'may be unloaded under its own threads' "$flags"
none 'looks for libraries where it was built' "$(readelf -dW "$plugin" | grep -E 'RPATH|RUNPATH')"
none 'text relocations' "$(readelf -dW "$plugin" | grep TEXTREL)"
grep -q 'GNU_STACK.*RWE' <<<"$(readelf -lW "$plugin")" && wrong 'an executable stack' GNU_STACK
none 'the name by which others would find it' \
  "$(readelf -dW "$plugin" | grep SONAME | grep -v '\[libnccl-net-beeline.so\]')"

exit "$failed"
