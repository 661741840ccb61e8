# shellcheck shell=bash disable=SC2034,SC2154  # what it sets for others, and pci.sh for it
# SPDX-License-Identifier: Apache-2.0
#
# Runs `beeline topo` inside the emulated machine, and derives the expected output from the sysfs paths of
# devices alone. Needs check.sh, pci.sh and the variable `beeline`.

# topo OPTION...: runs it with the displays as GPUs, in the order of their addresses.
topo() {
  local display_options=() address
  for address in "${displays[@]}"; do display_options+=(--gpu "$address"); done
  beeline_topo "${display_options[@]}" "$@"
}
beeline_topo() { "${as[@]}" timeout --kill-after=5 120 "$beeline" topo "$@"; }
as=() # a command that runs it as another user

# The distribution's Python, since others may be started by a script, which takes long here.
graph() { PATH=/usr/bin:$PATH python3 "$(dirname "${BASH_SOURCE[0]}")/graph.py" "$@"; }

# --- Expected output, from the kernel ---------------------------------------------------------------

find_devices() {
  local node
  displays=() cards=()
  for node in 0 1; do
    mapfile -t -O ${#displays[@]} displays < <(devices "$display" "$node")
    mapfile -t -O ${#cards[@]} cards < <(devices "$ethernet" "$node")
  done
  ((${#displays[@]} == 4 && ${#cards[@]} == 6))
}

kernel_tree() {
  local address above
  for address in "${addresses[@]}"; do
    [[ ${node_of[$address]} != -1 ]] || continue
    above=${path_of[$address]%/*}
    echo "$address: ${bridges[${identity_of[$address]}]-device} below ${above##*/}, node ${node_of[$address]}"
  done
}

# near ADDRESS ADDRESS: the distance in the terms of nvidia-smi, as far as this machine has them.
near() {
  if [[ -n ${switch_of[$1]} && ${switch_of[$1]} == "${switch_of[$2]}" ]]; then
    echo PIX
  elif [[ ${root_bus_of[$1]} == "${root_bus_of[$2]}" ]]; then
    echo PHB
  elif [[ ${node_of[$1]} == "${node_of[$2]}" ]]; then
    echo NODE
  else
    echo SYS
  fi
}

kernel_distances() {
  local i card
  for i in "${!displays[@]}"; do
    for card in "${cards[@]}"; do
      echo "GPU$i rxe_${interface_of[$card]} $(near "${displays[i]}" "$card")"
    done
  done
}

# Behind each switch there are as many cards as displays: the first display gets the first card. Cards
# that are behind no switch are left over.
kernel_assignment() {
  local i card left=- given=' '
  for i in "${!displays[@]}"; do
    for card in "${cards[@]}"; do
      [[ ${switch_of[$card]} == "${switch_of[${displays[i]}]}" && $given != *" $card "* ]] || continue
      echo "GPU$i rxe_${interface_of[$card]}"
      given+="$card "
      break
    done
  done
  for card in "${cards[@]}"; do
    [[ $given == *" $card "* ]] || left+=" rxe_${interface_of[$card]}"
  done
  echo "$left"
}

# --- Output of beeline ------------------------------------------------------------------------------

# agree COMMAND FILE: succeeds if the command prints the lines of the file. Their number is the figure.
agree() {
  "$1" >/run/expected && diff /run/expected "$2" && echo "= $(wc -l <"$2") lines" && [[ -s $2 ]]
}

draw() { topo --json >/run/topo.json; }

# says WHAT COMMAND [FILE]: compares a view of the last graph, or of a file, with the expected output.
says() { graph "$1" "${3-/run/topo.json}" >/run/view && agree "$2" /run/view; }

# Compares the matrix of the text output, converted to the lines of `graph.py distances`.
matrix_says() {
  topo --all >/run/topo.txt && cat /run/topo.txt && awk '
    NF > 2 && $(NF - 1) == "NUMA" && $NF == "CPUs" { columns = split($0, head) - 2; next }
    columns && $1 ~ /^GPU/ && NF == columns + 3 {
      for (i = 1; i <= columns; ++i) if (head[i] ~ /^rxe/) print $1, head[i], $(i + 1)
    }' /run/topo.txt >/run/view && agree kernel_distances /run/view
}

# same_graph "KEY..." COMMAND...: succeeds if another reading gives the last graph, except for facts of
# these keys.
same_graph() {
  "${@:2}" >/run/other.json || return
  # shellcheck disable=SC2086  # a list of words
  graph same /run/topo.json /run/other.json $1
}

# Facts that are not in an XML file of hwloc, and device names that lstopo writes if hwloc's plugins are
# installed, which this project does not use.
not_in_xml='name link_now link_max ports pci_class bottleneck slow_links findings nccl'
from_xml() { lstopo-no-graphics "$@" --of xml /run/hwloc.xml --force && topo --json --from /run/hwloc.xml; }

# Compares the distances from a file for NCCL, which has no host bridges.
nccl_xml_says() {
  topo --nccl-xml /run/nccl.xml >/run/topo.txt && beeline_topo --json --from /run/nccl.xml >/run/other.json &&
    says distances distances_in_nccl_xml /run/other.json
}
distances_in_nccl_xml() { kernel_distances | sed 's/PHB$/NODE/'; }

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
topo_as_nobody() {
  local as=("${nobody[@]}")
  topo --json
}

# without FOLDER COMMAND...: runs the command with a /sys in which that folder is empty.
# shellcheck disable=SC2016  # for the shell inside
without() { unshare --mount -- sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$@"; }

# unseen FOLDER REMARK: an ordinary user without this folder gets a graph with this remark.
unseen() {
  without "$1" "${nobody[@]}" timeout --kill-after=5 120 "$beeline" topo --json >/run/other.json &&
    graph remarks /run/other.json | tee /run/view | sed 's/^/= /' && grep -q "$2" /run/view
}
