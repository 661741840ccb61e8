# shellcheck shell=bash disable=SC2034  # the scripts that source it use its lists
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share: words on the screen, Debian packages, build lanes, results of tests.
# Sourcing it moves to the repository's root and gives up standard input, so that a script works
# from any folder and never waits for a key.

set -u -o pipefail
exec </dev/null
export LC_ALL=C.UTF-8
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

# --- Words ----------------------------------------------------------------------------------------

bold='' red='' plain=''
if [[ -t 1 && -z ${NO_COLOR-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
fi

section() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

# stop LINE... : the script cannot go on, for a reason outside the code being built.
stop() {
  printf '%s\n' "$@" >&2
  exit 2
}

# timed WORDS COMMAND... : runs it, then says how long it took and how it ended.
timed() {
  local words=$1 start=$SECONDS rc=0
  shift
  "$@" || rc=$?
  if ((rc == 0)); then
    printf '%s: done in %d s\n' "$words" $((SECONDS - start))
  else
    printf '%s%s: FAILED after %d s%s\n' "$red" "$words" $((SECONDS - start)) "$plain"
  fi
  return "$rc"
}

# --- Packages: all that a bare Debian 12 lacks ----------------------------------------------------

build_packages=(
  g++ meson ninja-build pkgconf python3
  libibverbs-dev librdmacm-dev # their headers only
  libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libexpat1-dev
  libhwloc-dev # its header only
  catch2 libbenchmark-dev
)
test_packages=(
  ibverbs-utils perftest ucx-utils procps # programs of others that run over softnic
  hwloc-nox                               # its own picture of a machine
  patch                                   # breaks softnic and the plugin on purpose
  valgrind strace                         # count instructions and system calls
  clang libclang-rt-14-dev                # fuzzing
)
vm_packages=(
  qemu-system-x86 busybox-static cpio kmod xz-utils # scripts/vm
  make gcc-12 libelf1                               # and its --siw
  iproute2 rdma-core ibverbs-providers rdmacm-utils # RDMA devices in the machine
)
lint_packages=(cppcheck clang-tidy clang-format shellcheck)
coverage_packages=(gcovr)
lint_checks=(clang-format shellcheck cppcheck clang-tidy) # what scripts/lint can do

# need_packages NAME... : installs what is missing. Nothing missing: needs no root and no network.
need_packages() {
  local missing log
  missing=$(missing_packages "$@")
  [[ -n $missing ]] || return 0
  section "Installing from Debian: $missing"
  # shellcheck disable=SC2086  # a list of words
  if ! log=$(apt_install $missing 2>&1); then
    tail -n 5 <<<"$log" >&2
    stop "Missing packages: $missing" \
      "They could not be installed from here. As root, with a network:" \
      "  apt-get update && apt-get install --no-install-recommends $missing"
  fi
}

missing_packages() {
  local installed name missing=()
  installed=" $(dpkg-query --show --showformat='${Package}:${db:Status-Status} ')"
  for name in "$@"; do
    [[ $installed == *" $name:installed "* ]] || missing+=("$name")
  done
  printf '%s' "${missing[*]}"
}

# A fresh machine has no package lists, and an old one may have lists too old to install from.
apt_install() {
  local install=(install --yes --no-install-recommends)
  if compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null && apt_get "${install[@]}" "$@"; then
    return 0
  fi
  apt_get update && apt_get "${install[@]}" "$@"
}

apt_get() {
  local as_root=()
  (($(id -u) == 0)) || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}

# --- Lanes: one build folder for each way of compiling --------------------------------------------

lane_dir() {
  if [[ $1 == plain ]]; then echo build; else echo "build-$1"; fi
}

lane_options() {
  local instrumented=(-Doptimization=0 -Ddebug=false -Dcpp_args=-g1 -Dbench=false) # lines are enough
  case $1 in
    plain) echo -Dwerror=true ;;
    # No -Werror from here on: instrumented code draws false warnings out of gcc. Not optimised: that
    # is most of the time that gcc needs for such code, and what is checked is the same.
    asan) echo -Db_sanitize=address,undefined "${instrumented[@]}" ;;
    tsan) echo -Db_sanitize=thread "${instrumented[@]}" ;;
    # Threads would lose each other's counts.
    coverage) echo -Db_coverage=true -Dbuildtype=debug -Dcpp_args=-fprofile-update=atomic ;;
    *) stop "no lane is called '$1'" ;;
  esac
}

# build_lane LANE [TARGET...] : configures where needed, then builds. Into a file or a pipe, ninja
# writes only what went wrong.
build_lane() {
  local dir quiet=()
  dir=$(lane_dir "$1")
  [[ -t 1 ]] || quiet=(--quiet)
  configure_lane "$1" && ninja "${quiet[@]}" -C "$dir" -j "$(nproc)" "${@:2}"
}

configure_lane() {
  local dir options log command
  dir=$(lane_dir "$1")
  options=$(lane_options "$1") || exit
  if [[ ! -f $dir/build.ninja ]]; then
    command="meson setup $options $dir"
  elif [[ $(cat "$dir/lane-options" 2>/dev/null) != "$options" ]]; then
    command="meson setup --reconfigure $options $dir"
  else
    command="ninja -C $dir build.ninja" # again only if a meson.build changed
  fi
  if ! log=$($command 2>&1); then
    printf '%s\n' "$log"
    return 1
  fi
  echo "$options" >"$dir/lane-options"
}

# in_lane LANE COMMAND... : runs it as that lane's programs want to be run.
in_lane() (
  case $1 in
    asan)
      export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:abort_on_error=0
      export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
      ;;
    tsan)
      # The plugin's control thread ends by itself, and nobody is left at exit to join it.
      export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:report_thread_leaks=0
      # Where addresses are too random, TSan dies with "unexpected memory mapping".
      if setarch -R true 2>/dev/null; then
        exec setarch -R "${@:2}"
      fi
      ;;
  esac
  "${@:2}"
)

# --- Results --------------------------------------------------------------------------------------

passed=0 failed=0 skipped=0
failures=() # what failed, and the command that runs it again
skips=()    # what was skipped, and why

count_pass() { passed=$((passed + ${1-1})); }
count_skip() { # NAME [HOW_MANY]
  skipped=$((skipped + ${2-1}))
  skips+=("$1")
}
count_fail() { # NAME AGAIN [HOW_MANY]
  failed=$((failed + ${3-1}))
  failures+=("$1" "    again: $2")
}

# test_lane LANE [MESON_TEST_ARGUMENT...] : builds the lane, runs its tests and counts them.
test_lane() {
  local lane=$1 dir before=$((passed + skipped)) failed_before=$failed rc=0 patience=1
  dir=$(lane_dir "$lane")
  section "$lane"
  if ! timed "build" build_lane "$lane"; then
    count_fail "$lane: build" "scripts/test --lane $lane"
    return
  fi
  [[ $lane == plain ]] || patience=4 # how much slower instrumented tests may be
  rm -f "$dir/meson-logs/testlog.json"
  in_lane "$lane" meson test -C "$dir" --no-rebuild --print-errorlogs \
    --timeout-multiplier "$patience" "${@:2}" || rc=$?
  count_tests "$lane" "$dir/meson-logs/testlog.json"
  ((failed == failed_before)) || return
  if ((rc != 0)); then
    count_fail "$lane: meson test ended with $rc" "scripts/test --lane $lane"
  elif ((passed + skipped == before)); then
    count_fail "$lane: no test ran" "scripts/test --lane $lane"
  fi
}

count_tests() { # LANE TESTLOG
  local word count name
  while read -r word count name; do
    case $word in
      passed) count_pass "$count" ;;
      skipped) count_skip "$1: $name" "$count" ;;
      failed) count_fail "$1: $name" "scripts/test --lane $1 $name" "$count" ;;
    esac
  done <<<"$(python3 scripts/tally.py "$2")"
}

# report : says what was skipped and what failed, closes with the one line to look at, and returns the
# verdict.
report() {
  if ((${#skips[@]})); then
    section "Skipped"
    printf '%s\n' "${skips[@]}"
  fi
  if ((${#failures[@]})); then
    section "Failed"
    printf '%s\n' "${failures[@]}"
  fi
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  ((passed > 0 && failed == 0))
}
