# shellcheck shell=bash disable=SC2034,SC2154  # what it sets for others, and pci.sh for it
# SPDX-License-Identifier: Apache-2.0
#
# `beeline topo` inside the emulated machine, and what it ought to say: worked out from the paths of
# devices alone. Wants check.sh and pci.sh, and `beeline`.

# topo OPTION... : the displays are its GPUs, in the order of their addresses.
topo() {
  local display_options=() address
  for address in "${displays[@]}"; do display_options+=(--gpu "$address"); done
  beeline_topo "${display_options[@]}" "$@"
}
beeline_topo() { "${as[@]}" timeout --kill-after=5 120 "$beeline" topo "$@"; }
as=() # whom

# The distribution's own: others start by way of a script, which takes long here.
graph() { PATH=/usr/bin:$PATH python3 "$(dirname "${BASH_SOURCE[0]}")/graph.py" "$@"; }

# --- What the kernel says ---------------------------------------------------------------------------

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

# near ADDRESS ADDRESS : in the words of nvidia-smi, for what is in this machine.
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

# As many cards as displays are behind each switch: the first display gets the first card. What is
# behind none is left.
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

# --- What beeline says ------------------------------------------------------------------------------

# agree COMMAND FILE : the command's lines are those of the file. How many is the figure.
agree() {
  "$1" >/run/expected && diff /run/expected "$2" && echo "= $(wc -l <"$2") lines" && [[ -s $2 ]]
}

draw() { topo --json >/run/topo.json; }

# says WHAT COMMAND [FILE] : a view of the last graph, or of a file, against what the kernel says.
says() { graph "$1" "${3-/run/topo.json}" >/run/view && agree "$2" /run/view; }

# The matrix for people, in the same lines as `graph.py distances`.
matrix_says() {
  topo --all >/run/topo.txt && cat /run/topo.txt && awk '
    NF > 2 && $(NF - 1) == "NUMA" && $NF == "CPUs" { columns = split($0, head) - 2; next }
    columns && $1 ~ /^GPU/ && NF == columns + 3 {
      for (i = 1; i <= columns; ++i) if (head[i] ~ /^rxe/) print $1, head[i], $(i + 1)
    }' /run/topo.txt >/run/view && agree kernel_distances /run/view
}

# same_graph "KEY..." COMMAND... : another reading gives the graph of the last one, but for facts of
# these keys.
same_graph() {
  "${@:2}" >/run/other.json || return
  # shellcheck disable=SC2086  # a list of words
  graph same /run/topo.json /run/other.json $1
}

# What a file of hwloc's does not know; and the names that lstopo gives to devices where hwloc's plugins
# are installed, of which we use none.
not_in_xml='name link_now link_max ports pci_class bottleneck slow_links findings nccl'
from_xml() { lstopo-no-graphics "$@" --of xml /run/hwloc.xml --force && topo --json --from /run/hwloc.xml; }

# By way of a file for NCCL, which knows no host bridges.
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

# without FOLDER COMMAND... : in a /sys where nothing is in that folder.
# shellcheck disable=SC2016  # for the shell inside
without() { unshare --mount -- sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$@"; }

# unseen FOLDER REMARK : an ordinary user without it gets a graph, and one of its remarks says so.
unseen() {
  without "$1" "${nobody[@]}" timeout --kill-after=5 120 "$beeline" topo --json >/run/other.json &&
    graph remarks /run/other.json | tee /run/view | sed 's/^/= /' && grep -q "$2" /run/view
}
