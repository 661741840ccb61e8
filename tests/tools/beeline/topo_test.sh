#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `beeline topo`.
#   topo_test.sh PART BEELINE [SOFTNIC]
#   topo_test.sh --renew [BEELINE SOFTNIC]   writes the goldens again; read the difference
# PART: command_line, files (what --from reads, and --svg and --nccl-xml write), fabric (the whole output for
# softnic's machine with 8 GPUs and 8 NICs, byte by byte; needs SOFTNIC), broken (the same machine with a card
# in a wrong slot, and with parts of sysfs missing; needs SOFTNIC).
# Code in single quotes is for inner shells.
# shellcheck disable=SC2016
set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/tests/tools/beeline}
goldens=$here/goldens
part=$1 beeline=${2:-$root/build/tools/beeline} softnic=${3:-$root/build/softnic/softnic}
unset BEELINE_SYSFS_ROOT SOFTNIC_HOST SOFTNIC_FABRIC
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
  printf 'FAILED %s\n' "$1"
  printf '  %s\n' "${@:2}"
  failed=1
}

# expect WHAT WANTED_STATUS WANTED_TEXT COMMAND...: the text may stand anywhere in the output.
expect() {
  local what=$1 wanted_status=$2 wanted_text=$3 output status=0
  shift 3
  output=$("$@" 2>&1) || status=$?
  if [[ $status == "$wanted_status" && $output == *"$wanted_text"* ]]; then return; fi
  fail "$what" "status $status, wanted $wanted_status" "output $output" "wanted $wanted_text"
}

topo() { timeout 60 "$beeline" topo "$@"; }

# same WHAT WANTED FOUND: two files.
same() {
  diff -u "$2" "$3" >"$scratch/difference" ||
    fail "$1" "$(<"$scratch/difference")" "if the new output is right: tests/tools/beeline/topo_test.sh --renew"
}

# One GPU, two NICs and a disk on one switch.
small_machine() {
  cat >"$scratch/small.xml" <<'XML'
<system version="1">
  <cpu numaid="0" affinity="ff">
    <pci busid="0000:02:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:03:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0000:04:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" speed="400000" port="1"/></nic>
      </pci>
      <pci busid="0000:05:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_1" speed="400000" port="1"/></nic>
      </pci>
      <pci busid="0000:06:00.0" class="0x010802" link_speed="16.0 GT/s PCIe" link_width="4"/>
    </pci>
  </cpu>
</system>
XML
}

json_of_diff() {
  topo --diff "$small" "$slow" --json >"$scratch/diff.json"
  local status=$?
  python3 -c 'import json, sys; d = json.load(sys.stdin); print(json.dumps(d["differences"]), d["not_compared"])' \
    <"$scratch/diff.json"
  return "$status"
}

# Exit status and output of --check and --diff.
check_and_diff() {
  local slow=$scratch/slow.xml small=$scratch/small.xml
  sed '/0000:04:00.0/s/32.0 GT/2.5 GT/' "$small" >"$slow"
  expect 'a slow link is wrong' 1 'mlx5_0: Gen1 x16 carries' topo --check --from "$slow"
  expect 'a file that does not say how fast links could be' 2 'it is unknown whether a link is slow' \
    topo --check --from "$small"
  expect 'nothing can be checked of nothing' 2 'no GPU' topo --check --from "$nothing"
  expect 'nor of a missing file' 2 'No such file' topo --check --from /nowhere.xml
  expect 'nor of a broken machine' 2 'not valid XML' env BEELINE_SYSFS_ROOT=/dev/null "$beeline" topo --check \
    --from <(echo x)
  expect 'the same' 0 'the same' topo --diff "$small" "$small"
  expect 'a link differs' 1 'mlx5_0: link Gen5 x16 in A, Gen1 x16 in B' topo --diff "$small" "$slow"
  expect 'a file cannot be read' 2 '--diff /nowhere.xml: No such file' topo --diff "$small" /nowhere.xml
  expect 'one file is no pair' 2 '--diff: At least 2' topo --diff "$small"
  expect 'a difference is all that is told' 2 '--diff A B shows only differences' \
    topo --diff "$small" "$slow" --all
  expect 'a program can read it' 1 '["mlx5_0: link Gen5 x16 in A, Gen1 x16 in B", ' json_of_diff
  expect 'a program can check' 1 '"verdict":' topo --check --json --from "$slow"
}

command_line() {
  small_machine
  local from=(--from "$scratch/small.xml") nothing=$scratch/nothing
  mkdir -p "$nothing/bus" "$scratch/other"
  expect 'version' 0 'Beeline 0.' "$beeline" --version
  expect 'help' 0 '--nccl-xml' "$beeline" topo --help
  expect 'this machine, whatever it is' 0 'this machine' topo
  expect 'nothing at all' 0 "$nothing: no GPU, no RDMA NIC, NUMA unknown" topo --from "$nothing"
  expect 'why there is nothing' 0 'PCI devices cannot be seen' topo --from "$nothing"
  expect 'nothing as JSON' 0 '"gpus": []' topo --from "$nothing" --json
  expect 'nothing as a picture' 0 'no GPU and no RDMA NIC' topo --from "$nothing" --svg -
  expect 'nothing for NCCL' 1 '--nccl-xml -: not written: there is no GPU and no RDMA NIC' \
    topo --from "$nothing" --nccl-xml -
  expect 'a folder that is not like /sys' 2 "--from $scratch/other: there is no bus, class or devices" \
    topo --from "$scratch/other"
  expect 'the plugin has the same root' 0 "$nothing: no GPU" \
    env BEELINE_SYSFS_ROOT="$nothing" "$beeline" topo

  expect 'two NICs for one GPU' 0 'GPU0: the 2 nearest NICs (PIX)' \
    topo "${from[@]}"
  expect 'a line to paste' 0 '  export NCCL_IB_HCA="=mlx5_0,mlx5_1"' topo "${from[@]}"
  sed '/0000:03:00.0/d' "$scratch/small.xml" >"$scratch/no-gpu.xml"
  expect 'NICs without a GPU' 0 $'\nNICs\n  NIC     address       NUMA node  ports     state  interface\n  mlx5_0  0000:04:00.0  0  ' \
    topo --from "$scratch/no-gpu.xml"
  expect 'only the matrix' 0 '        GPU0' topo "${from[@]}" --brief
  expect 'everything' 0 'Distances' topo "${from[@]}" --all
  expect 'one at most' 0 'mlx5_1 serves no GPU: ' topo "${from[@]}" --max-nics-per-gpu 1
  check_and_diff
  expect 'less than none' 2 '--max-nics-per-gpu -1: write a count' \
    topo "${from[@]}" --max-nics-per-gpu=-1
  expect 'a disk for a GPU' 0 'GPU1  0000:06:00.0' topo "${from[@]}" --gpu 0000:06:00.0
  expect 'two more GPUs' 2 '--gpu 0000:09:00.0: no such device' \
    topo "${from[@]}" --gpu 06:00.0 --gpu 0000:09:00.0
  expect 'what it could be' 2 'candidates: 0000:03:00.0, 0000:06:00.0' \
    topo "${from[@]}" --gpu 0000:09:00.0
  expect 'a GPU that is no address' 2 '--gpu GPU-7f: not a PCI address such as' \
    topo "${from[@]}" --gpu GPU-7f
  expect 'a NIC is no GPU' 2 '--gpu 0000:04:00.0: that is mlx5_0, not a GPU' \
    topo "${from[@]}" --gpu 0000:04:00.0
  expect 'a bridge is no GPU' 2 '--gpu 0000:02:00.0: that is bridge 0000:02:00.0, not a GPU' \
    topo "${from[@]}" --gpu 0000:02:00.0
  expect 'one thing on stdout' 2 'only one can use stdout' topo "${from[@]}" --json --svg -
  expect 'two files of one name' 2 'name two files' \
    topo "${from[@]}" --svg "$scratch/x" --nccl-xml "$scratch/x"
}

# Runs a command as a user who may not write here.
as_nobody() {
  if ((EUID != 0)); then
    "$@"
  else
    setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
  fi
}

# After an error, the folder contains only the unchanged file `good`.
unharmed() {
  [[ $(<"$1/good") == old && $(ls "$1") == good ]] || fail "$2: $(ls -l "$1")"
}

bad_places() {
  local from=(--from "$scratch/small.xml") folder=$scratch/folder own=$scratch/beeline
  mkdir "$folder"
  echo old >"$folder/good"
  expect 'no such folder' 1 "$folder/x/y.svg: cannot be written: No such file or directory; create its folder" \
    topo "${from[@]}" --svg "$folder/x/y.svg"
  expect 'a folder' 1 "$folder: cannot be written: Is a directory" topo "${from[@]}" --svg "$folder"
  expect 'a full device' 1 '/dev/full: cannot be written: No space left on device; free some space' \
    topo "${from[@]}" --nccl-xml /dev/full
  expect 'a full stdout' 1 'stdout: cannot be written: No space left on device' \
    bash -c '"$0" topo --json >/dev/full' "$beeline"
  expect 'a file that breaks off' 1 "$folder/good: cannot be written: File too large" \
    bash -c 'trap "" XFSZ; ulimit -f 1; "$0" topo "${@:2}" --svg "$1"' \
    "$beeline" "$folder/good" "${from[@]}"
  unharmed "$folder" 'a file that breaks off'
  expect 'one fails, the other is written' 1 "wrote $scratch/other.xml" \
    topo "${from[@]}" --svg "$folder/x/y.svg" --nccl-xml "$scratch/other.xml"

  # Other users may not be able to access the command.
  cp "$beeline" "$own"
  chmod 755 "$scratch" "$own" && chmod 555 "$folder"
  expect 'a folder that is not ours' 1 \
    "$folder/good: cannot be written: Permission denied; name a file in a folder where you may" \
    as_nobody "$own" topo "${from[@]}" --svg "$folder/good"
  chmod 755 "$folder"
  unharmed "$folder" 'a folder that is not ours'
  cp "$scratch/small.xml" "$scratch/secret.xml" && chmod 000 "$scratch/secret.xml"
  expect 'a file that is not ours' 2 "--from $scratch/secret.xml: Permission denied; copy it to" \
    as_nobody "$own" topo --from "$scratch/secret.xml"
}

bad_files() {
  local cut=$scratch/cut.xml
  expect 'a missing file' 2 '--from /nowhere.xml: No such file or directory; name NCCL' \
    topo --from /nowhere.xml
  head -n 5 "$scratch/small.xml" >"$cut"
  expect 'a file that was cut off' 2 "$cut:6: not valid XML: no element found; write the file again" \
    topo --from "$cut"
  sed 's/0000:04:00.0/0000:03:00.0/' "$scratch/small.xml" >"$cut"
  expect 'an address twice' 2 "$cut:5: busid \"0000:03:00.0\" appears twice, first in line 4" \
    topo --from "$cut"
  sed 's/<nic>/<nic/' "$scratch/small.xml" >"$cut"
  expect 'a malformed file' 2 "$cut:6: not valid XML: not well-formed" topo --from "$cut"
  expect 'no machine' 2 ':1: <html> is neither' topo --from <(echo '<html/>')
}

files() {
  small_machine
  bad_files
  bad_places
  local out=$scratch/out.svg link=$scratch/link.svg
  echo old >"$out" && chmod 640 "$out" && ln -s out.svg "$link"
  expect 'a file behind a link' 0 "wrote $link" topo --from "$scratch/small.xml" --svg "$link"
  [[ -L $link && $(stat -c %a "$out") == 640 && $(tail -n 1 "$out") == '</svg>' ]] ||
    fail "a link's file is written, and keeps its mode: $(ls -l "$scratch")"
  expect 'how to use it' 0 "to use it: export NCCL_TOPO_FILE='$scratch/a b.xml'" \
    topo --from "$scratch/small.xml" --nccl-xml "$scratch/a b.xml"
  expect 'a pipe' 0 'GPU0' bash -c '"$0" topo --from - <"$1"' "$beeline" "$scratch/small.xml"
  expect 'nothing else beside JSON' 0 ok python3 -c '
import json, subprocess, sys
told = subprocess.run(sys.argv[1:], check=True, capture_output=True)
assert json.loads(told.stdout)["gpus"][0]["name"] == "GPU0" and b"wrote" in told.stderr
print("ok")' "$beeline" topo --from "$scratch/small.xml" --json --svg "$out"

  # Another XML parser accepts the picture, whatever the name of a device.
  expect 'a name in Latin-1, with markup' 0 "wrote $scratch/name.svg" topo \
    --from <(sed "1i <?xml version='1.0' encoding='ISO-8859-1'?>" "$scratch/small.xml" |
      LC_ALL=C sed 's/mlx5_0/\xe9\xfc\x9b]]\&gt;\&lt;\&amp;\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9/') \
    --svg "$scratch/name.svg"
  expect 'that picture' 0 'éü?]]><&é' env PYTHONIOENCODING=utf-8 python3 -c '
import sys, xml.etree.ElementTree
print("".join(xml.etree.ElementTree.parse(sys.argv[1]).getroot().itertext()))' "$scratch/name.svg"

  # hwloc's own file of this machine, if its tool is installed.
  if command -v lstopo-no-graphics >"$scratch/where"; then
    lstopo-no-graphics --of xml "$scratch/hwloc.xml"
    expect "hwloc's own variable" 0 'another machine (hwloc)' \
      env HWLOC_XMLFILE="$scratch/hwloc.xml" "$beeline" topo
    expect "hwloc's XML" 0 "$scratch/hwloc.xml (hwloc)" topo --from "$scratch/hwloc.xml"
  fi

  # The XML for NCCL gives the same assignment and the same distances.
  topo --all --from "$goldens/dgx-8rail.xml" --nccl-xml "$scratch/again.xml" \
    >"$scratch/again.txt" 2>"$scratch/said"
  same 'XML, read and written again' "$goldens/dgx-8rail.xml" "$scratch/again.xml"
  answers <"$goldens/dgx-8rail.txt" >"$scratch/wanted"
  answers <"$scratch/again.txt" >"$scratch/found"
  grep -q 'GPU7 .* softnic7 ' "$scratch/wanted" || fail 'there are no answers to compare'
  same 'the XML read in place of the machine' "$scratch/wanted" "$scratch/found"
}

answers() { sed -n '/^Which NIC for which GPU$/,/^$/p; /^Distances$/,$p'; }

# on_fabric COMMAND...: runs it on a host of softnic's machine.
on_fabric() {
  timeout 60 "$softnic" run --name "test-topo-$$" --fabric "$root/tests/fabrics/dgx-8rail.toml" \
    --host h0 -- "$@"
}

# Writes the output for the live machine: DIR/NAME.txt, .json, .xml, .svg.
show_all() {
  on_fabric bash -c '
    set -e
    "$0" topo --all >"$1.txt"
    "$0" topo --json >"$1.json"
    "$0" topo --nccl-xml - >"$1.xml"
    "$0" topo --svg - >"$1.svg"' "$beeline" "$1/dgx-8rail"
}

# Writes text and picture of a machine with a card in a slot of half the lanes and a lower generation.
show_wrong_slot() {
  copy_sysfs
  local slot=$scratch/sysfs/bus/pci/devices/0000:b9:01.0 card=$scratch/sysfs/bus/pci/devices/0000:bb:00.0
  local end
  for end in "$slot" "$card"; do
    echo '16.0 GT/s PCIe' >"$end/current_link_speed"
    echo 8 >"$end/current_link_width"
  done
  topo --from "$scratch/sysfs" >"$1/wrong-slot.txt"
  topo --from "$scratch/sysfs" --svg - >"$1/wrong-slot.svg"
  sed -i "s|$scratch/sysfs|SYSFS_ROOT|g" "$1"/wrong-slot.*
}

# In softnic's tree, files with equal content are hard links; in the copy each is a separate file.
copy_sysfs() {
  rm -rf "$scratch/sysfs"
  on_fabric bash -c 'cp -r --no-dereference "$BEELINE_SYSFS_ROOT" "$0"' "$scratch/sysfs"
}

fabric() {
  show_all "$scratch" || fail 'the fabric can be shown'
  local kind
  for kind in txt json xml svg; do
    same "the machine as $kind" "$goldens/dgx-8rail.$kind" "$scratch/dgx-8rail.$kind"
  done
  expect 'nothing is wrong with it' 0 'no link is slow' on_fabric "$beeline" topo --check
}

broken() {
  show_wrong_slot "$scratch"
  same 'a wrong slot as text' "$goldens/wrong-slot.txt" "$scratch/wrong-slot.txt"
  same 'a wrong slot as picture' "$goldens/wrong-slot.svg" "$scratch/wrong-slot.svg"
  expect 'a terminal has colors' 0 $'\n\033[31mProblems\033[0m\n' python3 "$root/tests/tools/beeline/terminal.py" 80 \
    "$beeline" topo --from "$scratch/sysfs"

  copy_sysfs
  rm -r "$scratch/sysfs/class/infiniband"
  expect 'no RDMA devices' 0 'RDMA devices cannot be seen' topo --from "$scratch/sysfs"
  expect 'GPUs without NICs' 0 'there is no RDMA NIC for any GPU' \
    topo --from "$scratch/sysfs"
  rm -r "$scratch/sysfs/devices/system"
  expect 'no NUMA nodes' 0 'NUMA nodes cannot be seen' topo --from "$scratch/sysfs"
  rm -r "$scratch/sysfs/bus"
  expect 'no PCI' 0 'no GPU, no RDMA NIC' topo --from "$scratch/sysfs"
}

case $part in
  command_line | files | fabric | broken) "$part" ;;
  --renew) show_all "$goldens" && show_wrong_slot "$goldens" || failed=1 ;;
  *) echo "no part $part" && exit 2 ;;
esac
exit "$failed"
