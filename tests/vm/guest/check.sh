# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What a suite says: one line for each check, all that the program said where one failed, and one
# line at the end which scripts/test counts by.

checks_passed=0 checks_failed=0 checks_skipped=0
said=/run/said # what the last command printed

# check NAME COMMAND... : passes if the command ends with 0. A line of its output that starts with
# "= " is a figure, shown behind the name.
check() {
  local name=$1 status=0
  shift
  "$@" >"$said" 2>&1 || status=$?
  if ((status == 0)); then
    pass "$name" "$(sed -n 's/^= //p' "$said" | paste -sd ' ')"
  else
    fail "$name" "exit status $status of: $*"
    sed 's/^/    /' "$said"
  fi
  return "$status"
}

pass() { # NAME [FIGURE]
  checks_passed=$((checks_passed + 1))
  printf 'ok    %-58s %s\n' "$1" "${2-}"
}

fail() { # NAME WHY
  checks_failed=$((checks_failed + 1))
  printf 'FAIL  %s: %s\n' "$1" "$2"
}

skip() { # NAME WHY
  checks_skipped=$((checks_skipped + 1))
  printf 'skip  %s: %s\n' "$1" "$2"
}

note() { printf '      %s\n' "$*"; }

# refused SENTENCE COMMAND... : the command must fail, and say this on its way (a regular
# expression).
refused() {
  local sentence=$1 status=0
  shift
  "$@" >/run/refused 2>&1 || status=$?
  grep -m 1 -oE "$sentence" /run/refused | sed 's/^/= /'
  if ((status == 0)) || ! grep -qE "$sentence" /run/refused; then
    printf 'exit status %d; wanted was a failure that says: %s\n' "$status" "$sentence"
    cat /run/refused
    return 1
  fi
}

# until_true SECONDS COMMAND... : asks again until it succeeds. Never wait for a time to pass
# instead: the machine is emulated, and now and then ten times slower than before.
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS > deadline)); then
      echo "waited in vain for: $*"
      return 1
    fi
    sleep 0.05
  done
}

# end_of_suite : says what happened and leaves. A suite that checked nothing has failed.
end_of_suite() {
  printf '%d passed, %d failed, %d skipped\n' "$checks_passed" "$checks_failed" "$checks_skipped"
  ((checks_failed == 0 && checks_passed > 0))
  exit
}
