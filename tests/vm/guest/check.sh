# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The report of a suite: one line for each check, the output of a check that failed, and a last line
# with the counts, which scripts/test reads.

checks_passed=0 checks_failed=0 checks_skipped=0
said=/run/said # the output of the last command

# check NAME COMMAND...: passes if the command's exit status is 0. A line of its output that starts with
# "= " is a figure, which is shown after the name.
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

# refused SENTENCE COMMAND...: the command must fail, and its output must match SENTENCE (a regular
# expression).
refused() {
  local sentence=$1 status=0
  shift
  "$@" >/run/refused 2>&1 || status=$?
  grep -m 1 -oE "$sentence" /run/refused | sed 's/^/= /'
  if ((status == 0)) || ! grep -qE "$sentence" /run/refused; then
    printf 'exit status %d; expected a failure whose output matches: %s\n' "$status" "$sentence"
    cat /run/refused
    return 1
  fi
}

# until_true SECONDS COMMAND...: repeats the command until it succeeds. Use this instead of a fixed wait:
# the machine is emulated, and at times ten times slower than usual.
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS > deadline)); then
      echo "not true in time: $*"
      return 1
    fi
    sleep 0.05
  done
}

# end_of_suite: prints the counts and exits. A suite without a check has failed.
end_of_suite() {
  printf '%d passed, %d failed, %d skipped\n' "$checks_passed" "$checks_failed" "$checks_skipped"
  ((checks_failed == 0 && checks_passed > 0))
  exit
}
