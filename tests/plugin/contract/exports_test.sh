#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the symbols that the plugin's file exports and the libraries that it needs. It is loaded into
# other people's programs and must not disturb them.
#
#   exports_test.sh PLUGIN VERSION...    versions of the table that must be there
#
# Prints the newest version of glibc that it needs.
set -u -o pipefail
export LC_ALL=C
plugin=$1
shift
# common/old_glibc has substitutes for functions of newer versions.
newest_allowed=2.28
failed=0

# wrong WHAT TEXT
wrong() {
  printf 'FAILED %s:\n%s\n' "$1" "$2"
  failed=1
}

# none WHAT TEXT: fails unless the text is empty.
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
none 'needs libraries that a plugin must not need' \
  "$(grep -vxE 'lib(c|m)\.so\.6|lib(dl\.so\.2|pthread\.so\.0)|ld-linux-x86-64\.so\.2' <<<"$needed")"
loaded=$(ldd "$plugin" | awk '{ print $1 }' | sed 's,.*/,,')
none 'loads more libraries' \
  "$(grep -vxE 'lib(c|m)\.so\.6|lib(dl\.so\.2|pthread\.so\.0)|ld-linux-x86-64\.so\.2|linux-vdso\.so\.1' <<<"$loaded")"

newest=$(readelf -VW "$plugin" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
echo "newest glibc needed: $newest"
[[ $(printf '%s\n' "$newest" "$newest_allowed" | sort -V | tail -n 1) == "$newest_allowed" ]] ||
  wrong "needs a glibc newer than $newest_allowed" \
    "$(nm -D --undefined-only "$plugin" | grep "GLIBC_$newest")"

flags=$(readelf -dW "$plugin" | grep -E 'FLAGS')
grep -q NODELETE <<<"$flags" || wrong 'can be unloaded while its threads run' "$flags"
grep -q 'NOW' <<<"$flags" || wrong 'does not bind its functions when it is loaded' "$flags"
none 'has a path to search for libraries' "$(readelf -dW "$plugin" | grep -E 'RPATH|RUNPATH')"
none 'text relocations' "$(readelf -dW "$plugin" | grep TEXTREL)"
grep -q 'GNU_STACK.*RWE' <<<"$(readelf -lW "$plugin")" && wrong 'an executable stack' GNU_STACK
none 'a SONAME by which other programs would find it' \
  "$(readelf -dW "$plugin" | grep SONAME | grep -v '\[libnccl-net-beeline.so\]')"

exit "$failed"
