#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# contract.sh rxe|siw CONTRACT_TESTS PLUGIN SUBJECT...: runs the contract tests, which otherwise use a
# softnic fabric, on two soft devices of the kernel, RoCE or iWARP.
set -u -o pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../guest/check.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../guest/rdma.sh"

patient_devices
kind=$1 tests=$2 subjects=("${@:4}")
export BL_TEST_PLUGIN=$3 BL_TEST_DEVICES=${kind}_a1,${kind}_b1

one_cable() { "load_$kind" && plug_in 1 && rdma_device "$kind" a1 b1; }

# Runs the tests of a subject that do not need softnic.
contract() { # SUBJECT
  timeout --kill-after=5 300 "$tests" "[$1]~[slow]~[softnic]" >/run/contract 2>&1
  local status=$?
  cat /run/contract
  ((status == 0)) && sed -nE 's/^(test cases|All tests).* ([0-9]+ (passed|test cases?))\)?$/= \2/p' /run/contract
}

# A kernel warning would be about the use of its driver.
kernel_is_calm() { ! dmesg | grep -E 'WARNING:|BUG:|Oops|unregister_netdevice: waiting'; }

"need_$kind"
note "Linux $(uname -r)"
check "a cable with $kind at both ends" one_cable || end_of_suite
for subject in "${subjects[@]}"; do check "$subject" contract "$subject"; done
check "the kernel has logged no warning" kernel_is_calm
end_of_suite
