#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memlock.sh BEELINE PLUGIN: tests the error message for an ordinary user whose limit on locked memory is
# too low.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/perf.sh"

# as_nobody LIMIT COMMAND...: sets the soft and the hard limit, so that the plugin cannot raise it.
as_nobody() {
  local limit=$1
  shift
  prlimit --memlock="$limit:$limit" setpriv --reuid=65534 --regid=65534 --clear-groups \
    timeout --kill-after=5 "$patience" "$beeline" perf --plugin "$plugin" "$@"
}
user_stream() { as_nobody "$1" stream --sizes 1M --iters 2 --dev rxe_a1,rxe_b1; } # LIMIT

one_cable() { load_rxe && plug_in 1 && rdma_device rxe a1 b1; }

check "a cable with rxe at both ends" one_cable || end_of_suite
check "no limit: it works for an ordinary user" user_stream unlimited
explained='Cannot allocate memory; the locked-memory limit is 128 KiB .*--ulimit memlock=-1'
check "128 KiB: the error says the limit and what to do" \
  refused "$explained" user_stream $((128 << 10))
check "a limit of 0: the same, although the kernel's errno is another one" \
  refused 'Operation not permitted.*the locked-memory limit is 0 bytes' user_stream 0
end_of_suite
