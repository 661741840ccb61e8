# shellcheck shell=bash disable=SC2034  # the scripts that source it use its lists
# SPDX-License-Identifier: Apache-2.0
#
# Functions that the scripts share: output, Debian packages, build lanes, test results. Sourcing this file
# changes to the root of the repository and closes standard input, so that a script works from any folder
# and never waits for input.

set -u -o pipefail
exec </dev/null
export LC_ALL=C.UTF-8
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

# --- Output ---------------------------------------------------------------------------------------

bold='' red='' plain=''
if [[ -t 1 && -z ${NO_COLOR-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
fi

section() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

# stop LINE... : prints the lines and exits with 2, for a reason outside the code being built.
stop() {
  printf '%s\n' "$@" >&2
  exit 2
}

# timed STEP COMMAND... : runs it, then prints its time and result.
timed() {
  local step=$1 start=$SECONDS rc=0
  shift
  "$@" || rc=$?
  ((rc != 130)) || exit 130 # Ctrl-C, about which progress.py has said all
  note_time $((SECONDS - start)) "$step"
  if ((rc == 0)); then
    printf '%s: done in %d s\n' "$step" $((SECONDS - start))
  else
    printf '%s%s: FAILED after %d s%s\n' "$red" "$step" $((SECONDS - start)) "$plain"
  fi
  return "$rc"
}

# Appends the time of a step to the file from which `report` prints its table, if there is one.
note_time() { # SECONDS STEP
  [[ -z ${times_file-} ]] || printf '%s\n' "$*" >>"$times_file"
}

# --- Packages that a bare Debian 12 lacks ----- ----------------------------------------------------

demo_packages=(
  g++ meson ninja-build pkgconf python3
  libibverbs-dev librdmacm-dev # their headers only
  libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libexpat1-dev libsodium-dev
  libhwloc-dev # its header only
)
build_packages=("${demo_packages[@]}" catch2 libbenchmark-dev)
# The packages that only some tests need, in groups (`group` in scripts/select_tests.py).
tools_packages=(procps hwloc-nox)                   # lstopo describes a machine independently
foreign_packages=(ibverbs-utils perftest ucx-utils) # third-party programs that run over softnic
mutation_packages=(patch)                           # breaks softnic and the plugin on purpose
rpm_packages=(rpm)                                  # scripts/package makes one
packages_packages=(rpm python3-venv)                # which are installed
package_roots_packages=(rpm debootstrap)            # in systems of other distributions
steady_packages=(strace)                            # counts system calls
# They start ranks as docs/deploy says; kubectl checks a file. Where systemd runs, munge's package starts a daemon,
# which no test uses.
deploy_packages=(slurm-wlm munge openmpi-bin)
command -v kubectl >/dev/null || deploy_packages+=(kubernetes-client) # others than Debian package it too
fuzz_packages=(clang libclang-rt-14-dev)            # meson defines fuzz tests only where these are
vm_packages=(
  hwloc-nox
  qemu-system-x86 busybox-static cpio kmod xz-utils # scripts/vm
  make gcc-12 libelf1                               # and its --siw
  iproute2 rdma-core ibverbs-providers rdmacm-utils # RDMA devices in the machine
)
test_packages=(
  "${tools_packages[@]}" "${foreign_packages[@]}" "${mutation_packages[@]}" "${steady_packages[@]}"
  "${deploy_packages[@]}" "${fuzz_packages[@]}" "${packages_packages[@]}"
  valgrind                                          # counts instructions, in benchmarks
)
lint_packages=(cppcheck clang-tidy clang-format shellcheck)
coverage_packages=(gcovr)
lint_checks=(subjects clang-format shellcheck cppcheck clang-tidy) # what scripts/lint can do

# need_packages NAME... : installs missing packages. If none is missing, it needs no root and no network.
need_packages() {
  local missing log
  missing=$(missing_packages "$@")
  [[ -n $missing ]] || return 0
  section "Installing from Debian: $missing"
  log=$(mktemp)
  # shellcheck disable=SC2086  # a list of words
  if ! timed "installing" apt_install "$log" $missing; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    stop "Missing packages: $missing" \
      "They could not be installed from here. As root, with a network:" \
      "  apt-get update && apt-get install --no-install-recommends $missing"
  fi
  rm -f "$log"
}

# need_groups NAME... : installs the packages of these groups.
need_groups() {
  local name packages=()
  for name in "$@"; do
    local -n group=${name//-/_}_packages
    packages+=("${group[@]}")
  done
  need_packages "${packages[@]}"
}

missing_packages() {
  local installed name missing=()
  installed=" $(dpkg-query --show --showformat='${Package}:${db:Status-Status} ')"
  for name in "$@"; do
    [[ $installed == *" $name:installed "* ]] || missing+=("$name")
  done
  printf '%s' "${missing[*]}"
}

# apt_install LOG NAME... : updates the package lists if there are none, or if they are too old. Installs
# Python first if it is missing, because it shows the progress.
apt_install() {
  local log=$1 install=(install --yes --no-install-recommends)
  shift
  if ! command -v python3 >/dev/null; then
    echo 'installing: reading the package lists (about 10 s)'
    apt_get update >"$log" 2>&1 || return
    echo 'installing: python3, which then shows the progress of the rest (about 10 s)'
    apt_get "${install[@]}" python3 >"$log" 2>&1 || return
  elif ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
    echo 'installing: reading the package lists'
    apt_get update >"$log" 2>&1 || return
  fi
  show_install "$log" "${install[@]}" "$@" && return
  (($? != 130)) || return 130
  echo 'installing: again, with new package lists'
  apt_get update >"$log" 2>&1 && show_install "$log" "${install[@]}" "$@"
}

show_install() { # LOG ARGUMENT...
  apt_get "${@:2}" 2>&1 | PROGRESS_LOG=$1 progress installing
}

# progress (installing|building): the last command of a pipeline. Its status is 130 after Ctrl-C.
progress() {
  trap '' INT # which would end Python with a traceback before progress.py handles it
  exec python3 scripts/progress.py "$1"
}

apt_get() {
  local as_root=()
  (($(id -u) == 0)) || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 "$@"
}

# --- Lanes: one build folder for each way of compiling --------------------------------------------

# Users continue with the programs of the demo, so they are in the folder of a plain build.
lane_dir() {
  case $1 in
    plain | demo) echo build ;;
    *) echo "build-$1" ;;
  esac
}

# Meson puts up to 16 sources into one unit, which takes less than half of the time of compiling each by
# itself (docs/decisions/0016). Instrumented code is rebuilt less often: 40 take another tenth off.
unity=(-Dunity=on -Dunity_size=16)
big_unity=(-Dunity=on -Dunity_size=40)

lane_options() {
  local instrumented=(-Doptimization=0 -Ddebug=false -Dcpp_args=-g1 -Dbench=false "${big_unity[@]}")
  case $1 in
    # All options that the demo may have set differently in this folder. -g1: line numbers are enough.
    plain) echo -Dwerror=true -Ddebug=false -Dcpp_args=-g1 -Dtests=true -Dbench=true "${unity[@]}" ;;
    demo) echo -Ddebug=false -Dtests=false -Dbench=false "${big_unity[@]}" ;;
    # No -Werror from here on, because gcc gives false warnings for instrumented code. No optimization,
    # because it takes most of gcc's time for such code and does not change the checks.
    asan) echo -Db_sanitize=address,undefined "${instrumented[@]}" ;;
    tsan) echo -Db_sanitize=thread "${instrumented[@]}" ;;
    # Without atomic counters, threads would lose counts.
    coverage) echo -Db_coverage=true -Dbuildtype=debug -Dcpp_args=-fprofile-update=atomic ;;
    *) stop "no lane is called '$1'" ;;
  esac
}

# build_lane LANE [TARGET...] : configures if needed, then builds.
build_lane() {
  configure_lane "$1" && build_targets "$@"
}

build_targets() { # LANE [TARGET...]
  NINJA_STATUS='[%f/%t] ' ninja -C "$(lane_dir "$1")" -j "$(nproc)" "${@:2}" 2>&1 |
    progress building
}

configure_lane() {
  local dir options settings log command
  dir=$(lane_dir "$1")
  options=$(lane_options "$1") || exit
  settings="$options $(command -v clang++)" # meson defines fuzz tests only if it is there
  if [[ ! -f $dir/build.ninja ]]; then
    command="meson setup $options $dir"
    if [[ $1 == demo ]]; then
      # Nobody changes the code before the demo, so it needs no warnings. With less garbage collection in the
      # compiler, both save a sixth of its time.
      local -x CXXFLAGS="${CXXFLAGS-} -w --param=ggc-min-expand=400 --param=ggc-min-heapsize=524288"
    fi
  elif [[ $1 == demo ]]; then
    return 0 # an existing build has all that the demo needs
  elif [[ $(cat "$dir/lane-options" 2>/dev/null) != "$settings" ]]; then
    command="meson setup --reconfigure $options $dir"
  else
    command="ninja -C $dir build.ninja" # again only if a meson.build changed
  fi
  if ! log=$($command 2>&1); then
    printf '%s\n' "$log"
    return 1
  fi
  echo "$settings" >"$dir/lane-options"
}

# in_lane LANE COMMAND... : runs it with the environment that the lane's programs need.
in_lane() (
  case $1 in
    asan)
      export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:abort_on_error=0
      export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
      ;;
    tsan)
      # The plugin's control thread ends by itself, and is not joined at exit.
      export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:report_thread_leaks=0
      # With too much address randomization, TSan dies with "unexpected memory mapping".
      if setarch -R true 2>/dev/null; then
        exec setarch -R "${@:2}"
      fi
      ;;
  esac
  "${@:2}"
)

# --- Results --------------------------------------------------------------------------------------

passed=0 failed=0 skipped=0
failures=() # each failure, and the command that repeats it
skips=()    # each skipped test, and why

count_pass() { passed=$((passed + ${1-1})); }
count_skip() { # NAME [HOW_MANY]
  skipped=$((skipped + ${2-1}))
  skips+=("$1")
}
count_fail() { # NAME AGAIN [HOW_MANY]
  failed=$((failed + ${3-1}))
  failures+=("$1" "    again: $2")
}

# test_lane LANE [ARGUMENT of select_tests.py...] : builds what the chosen tests need, runs them and
# counts them.
test_lane() {
  local lane=$1 dir before=$((passed + skipped)) failed_before=$failed rc=0 patience=1
  local word name every tests=() targets=() later=() groups=() chosen
  dir=$(lane_dir "$lane")
  section "$lane"
  if ! timed "$lane: configure" configure_lane "$lane"; then
    count_fail "$lane: configure" "scripts/test --lane $lane"
    return
  fi
  chosen=$(python3 scripts/select_tests.py "$dir" "$lane" "${@:2}") || stop "nothing was tested"
  while read -r word name every; do
    case $word in
      test) tests+=("$name") ;;
      target) targets+=("$name") ;;
      later) later+=("$name ($every)") ;;
      group) groups+=("$name") ;;
    esac
  done <<<"$chosen"
  need_groups "${groups[@]}"
  if ! timed "$lane: build" build_targets "$lane" "${targets[@]}"; then
    count_fail "$lane: build" "scripts/test --lane $lane"
    return
  fi
  ((${#later[@]} == 0)) || printf 'run by other commits: %s\n' "${later[*]}"
  [[ $lane == plain ]] || patience=4 # how much slower instrumented tests may be
  rm -f "$dir/meson-logs/testlog.json"
  # Two more than there are processors: half of the tests' time is spent waiting.
  timed "$lane: tests" in_lane "$lane" meson test -C "$dir" --no-rebuild --print-errorlogs \
    --num-processes $(($(nproc) + 2)) --timeout-multiplier "$patience" "${tests[@]}" || rc=$?
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
      output) failures+=("    | $name") ;;
      seconds) note_time "$count" "$1: test $name" ;;
    esac
  done <<<"$(python3 scripts/tally.py "$2")"
}

# report : prints skipped tests, failures, times, and the final line; returns 0 if tests ran and none
# failed.
report() {
  if ((${#skips[@]})); then
    section "Skipped"
    printf '%s\n' "${skips[@]}"
  fi
  if ((${#failures[@]})); then
    section "Failed"
    printf '%s\n' "${failures[@]}"
  fi
  if [[ -s ${times_file-} ]]; then
    section "Time"
    python3 scripts/time_table.py "$times_file"
  fi
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  ((passed > 0 && failed == 0))
}
