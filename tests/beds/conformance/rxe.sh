#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rxe.sh CONFORMANCE EXPECTED COLUMN: the conformance program on two rxe devices of the emulated
# machine, a cable between them. Run by `scripts/vm`; the outcomes have to be those of that column.
set -u -o pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../../vm/guest/check.sh"
source "$here/../../vm/guest/rdma.sh"

load_rxe && plug_in 1 && rdma_device rxe a1 b1 || exit 2
exec timeout --kill-after=5 600 \
  "$1" --devices rxe_a1,rxe_b1 --expect "$2" --fabric "$3"
