#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# crash.sh: a machine whose QEMU crashes is started once more, but only if its command has not begun. A
# script stands for QEMU.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
scripts/vm --prepare >/dev/null 2>&1 || exit 77

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CRASHES=$work/crashes BEGINS # the crashes that are left, and whether the command begins before
cat >"$work/qemu-system-x86_64" <<'QEMU'
#!/usr/bin/env bash
job=$(grep -oP 'local,id=job,path=\K[^,]*' <<<"$*")
left=$(cat "$CRASHES")
[[ -z $BEGINS ]] || : >"$job/begun"
if ((left > 0)); then
  echo $((left - 1)) >"$CRASHES"
  kill -SEGV $$
fi
echo 7 >"$job/status"
QEMU
chmod +x "$work/qemu-system-x86_64"

failed=0
check() { # CRASHES BEGINS STATUS
  local status=0
  echo "$1" >"$CRASHES"
  BEGINS=$2 PATH=$work:$PATH scripts/vm -- true 2>"$work/said" || status=$?
  if ((status == $3)); then
    printf 'ok    %s crashes%s: exit status %s\n' "$1" "${2:+, the command had begun}" "$status"
  else
    printf 'FAIL  %s crashes%s: exit status %s\n' "$1" "${2:+, the command had begun}" "$status"
    cat "$work/said"
    failed=1
  fi
}
check 0 '' 7
check 1 '' 7
check 2 '' 125
check 1 yes 125
exit $failed
