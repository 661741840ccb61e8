# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Functions of foreign.sh. Each pair of processes runs on a fabric of its own, which must be gone when
# both have ended, and uses a free TCP port. The report has one line for each program, and its output
# if it failed.

patience=60    # seconds for one program: limits a hang, not a speed
softnic=       # the softnic program; set by foreign.sh
fabric_file='' # the description of new fabrics; empty: softnic's default
where=''       # appended to the command in the report, so that lines differ
wrap=()        # a command that starts each program; may be empty

scratch=$(mktemp -d)
server=0 # process id while one runs
trap 'end_server; rm -rf "$scratch"' EXIT

# --- Results --------------------------------------------------------------------------------------

ran=0 failed=0
label='' # the program that runs now

good() { # FIGURE
  ran=$((ran + 1))
  printf 'ok    %-47s %s\n' "$label" "$1"
}

bad() { # REASON
  local file
  ran=$((ran + 1)) failed=$((failed + 1))
  printf 'FAIL  %-47s %s\n' "$label" "$1"
  for file in "$scratch"/*; do
    printf -- '--- %s, on fabric %s:\n' "${file##*/}" "$fabric"
    cat "$file"
  done
  echo '---'
}

report() {
  printf '%d programs ran over softnic, %d failed\n' "$ran" "$failed"
  ((ran > 0 && failed == 0))
}

# --- Fabrics and processors -----------------------------------------------------------------------

fabrics=0 fabric=''

new_fabric() {
  fabrics=$((fabrics + 1))
  fabric=foreign-$$-$fabrics
  rm -f "$scratch"/*
}

fabric_is_gone() { [[ ! -e /dev/shm/softnic-$(id -u)-$fabric ]]; }

# Two programs that poll on one processor would alternate by the scheduler's time slices, at milliseconds
# for each message. So each host gets a processor of its own, if there are two.
mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
  awk -F- '{ for (cpu = $1; cpu <= $NF; ++cpu) print cpu }')

# on HOST COMMAND...: execs the command on this host. The first one on a fabric creates it.
on() {
  local host=$1 run=("$softnic" run --name "$fabric" --host "$1")
  shift
  if [[ -n $fabric_file ]] && fabric_is_gone; then run+=(--fabric "$fabric_file"); fi
  exec taskset -c "${cpus[${host#h} % ${#cpus[@]}]}" \
    timeout --kill-after=5 "$patience" "${wrap[@]}" "${run[@]}" -- "$@"
}

# --- A server and its port ------------------------------------------------------------------------

is_listening() { # PORT
  grep -qsiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp{,6}
}

# A port below the range that the kernel uses for outgoing connections.
choose_port() {
  port=0
  while ((port == 0)) || is_listening "$port"; do
    port=$((10000 + (RANDOM * 32768 + RANDOM) % 22000))
  done
}

# start_server COMMAND...: returns when it listens on $port. If another process has taken the port
# meanwhile, it tries another one.
start_server() {
  local tries=5
  while ((tries-- > 0)); do
    choose_port
    (on h0 "$@" -p "$port") >"$scratch/server" 2>&1 &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
      if is_listening "$port"; then return 0; fi
      sleep 0.01
    done
    server=0
    grep -qiE 'listen|bind|in use' "$scratch/server" || return 1
  done
  return 1
}

end_server() {
  if ((server != 0)); then kill "$server" 2>/dev/null; fi
  server=0
}

# --- Programs -------------------------------------------------------------------------------------

# pair FIGURE COMMAND...: runs the command twice, as server on h0 and as client on h1. FIGURE is a
# function that reads the client's output and prints the figure to show, or fails.
pair() {
  local figure=$1 rc_client=0 rc_server=0 text
  shift
  label="$*$where"
  new_fabric
  if ! start_server "$@"; then
    bad "the server did not come to listen"
    return
  fi
  (on h1 "$@" -p "$port" 127.0.0.1) >"$scratch/client" 2>&1 || rc_client=$?
  if ((rc_client != 0)); then kill "$server" 2>/dev/null; fi # it may wait for ever
  wait "$server" || rc_server=$?
  server=0
  if ((rc_client != 0 || rc_server != 0)); then
    bad "the client ended with $rc_client, the server with $rc_server"
  elif ! text=$("$figure" <"$scratch/client"); then
    bad "its output is not what it should be: $text"
  elif ! fabric_is_gone; then
    bad "the fabric was left behind"
  else
    good "$text"
  fi
}

# alone CHECK COMMAND...: runs one program on h0. CHECK reads its output, as above.
alone() {
  local check=$1 rc=0 text
  shift
  label="$*$where"
  new_fabric
  (on h0 "$@") >"$scratch/output" 2>&1 || rc=$?
  if ((rc != 0)); then
    bad "it ended with $rc"
  elif ! text=$("$check" <"$scratch/output"); then
    bad "its output is not what it should be: $text"
  else
    good "$text"
  fi
}

# refused COMMAND...: runs a server that must end by itself, with an error status and a message.
refused() {
  local rc=0
  label="$*$where"
  new_fabric
  choose_port
  (on h0 "$@" -p "$port") >"$scratch/output" 2>&1 || rc=$?
  if ((rc == 0 || rc >= 124)) || [[ ! -s $scratch/output ]]; then
    bad "it ended with $rc, and should have been refused"
  else
    good "refused, and says so: $(tail -n 1 "$scratch/output")"
  fi
}
