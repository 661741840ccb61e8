// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/kinds.h"

namespace beeline::checks {
namespace {

using enum Severity;

constexpr Kind kDevices[] = {
    {.id = "no-rdma-device",
     .severity = kFailure,
     .title = "The kernel has no RDMA device",
     .why = "NCCL falls back to TCP sockets, or stops if NCCL_NET=Beeline",
     .fix = "load the driver of the adapter; if the host has no adapter, programs can be tested "
            "with a software device (package beeline-softnic): softnic run -- COMMAND",
     .command = "modprobe {module}"},
    {.id = "device-node-missing",
     .severity = kFailure,
     .title = "A device has no file in /dev/infiniband",
     .why = "libibverbs cannot open the device, so it is not used",
     .fix = "in a container: docker run --device=/dev/infiniband --cap-add IPC_LOCK, or in "
            "Kubernetes request the resource of the RDMA device plugin; on a host load ib_uverbs",
     .command = "modprobe ib_uverbs"},
    {.id = "device-node-denied",
     .severity = kFailure,
     .title = "This user may not open a device",
     .why = "the device is not used",
     .fix = "in a container the device cgroup may refuse it as well: pass the device with "
            "--device=/dev/infiniband",
     .command = "chmod 666 /dev/infiniband/{uverbs}"},
    {.id = "libibverbs-missing",
     .severity = kFailure,
     .title = "libibverbs cannot be used",
     .why = "no RDMA device is used, and NCCL falls back to TCP sockets",
     .fix = "on RHEL: dnf install libibverbs",
     .command = "apt-get install libibverbs1 ibverbs-providers"},
    {.id = "provider-missing",
     .severity = kFailure,
     .title = "libibverbs does not list a device that the kernel has",
     .why = "the device is not used",
     .fix = "install the user-space driver, of the same version as libibverbs; on RHEL: dnf "
            "install libibverbs",
     .command = "apt-get install ibverbs-providers"},
    {.id = "device-not-opened",
     .severity = kFailure,
     .title = "libibverbs cannot open a device",
     .why = "the device is not used",
     .command = "ibv_devinfo -v"},
    {.id = "firmware-differs",
     .title = "Adapters of one model have different firmware",
     .why = "defects and defaults differ between rails, which is hard to find later",
     .fix = "update the firmware of the older ones with the vendor's tool",
     .command = "mlxfwmanager --query"},
    {.id = "iwarp-device",
     .severity = kNote,
     .title = "A device runs iWARP",
     .why = "Beeline uses it through librdmacm; NCCL's own transport cannot",
     .fix = "an Intel E810 is faster with RoCE v2: set its devlink parameters enable_iwarp to "
            "false and enable_roce to true, when nothing else uses iWARP on it (NFS, iSER)"},
};

constexpr Kind kPorts[] = {
    {.id = "no-active-port",
     .severity = kFailure,
     .title = "No port is active",
     .why = "there is no device that a job could use",
     .fix = "see the findings about each port"},
    {.id = "port-not-active",
     .title = "A port is not active",
     .why = "the port is not used",
     .fix = "check the cable, the transceiver and the switch",
     .command = "ip link set {netdev} up"},
    {.id = "no-subnet-manager",
     .title = "An InfiniBand port has a link but waits for a subnet manager",
     .why = "the port is not used",
     .fix = "start a subnet manager on one host (systemctl start opensm), unless a switch or "
            "another host has one: this shows which",
     .command = "sminfo"},
    {.id = "port-slow",
     .title = "A port is slower than others of the same model",
     .why = "transfers that are split equally run at the speed of the slowest rail; Beeline gives "
            "this one less, but its share of the bandwidth is lost",
     .fix = "a lane of the cable may have failed, or the switch port has another speed: replace "
            "the cable, or compare the settings of the switch ports",
     .command = "mlxlink -d {device}"},
    {.id = "mtu-small",
     .title = "The MTU of an interface is too small for RDMA packets of 4096 bytes",
     .why = "RoCE packets carry half of what they could or less, and each costs the same as a full "
            "one",
     .fix = "give the switch ports, the interface and the other hosts the same larger MTU, such as "
            "9000. Where a switch port keeps the smaller one, this cuts the host off: exclude the "
            "NIC of an interface that other traffic uses instead (NCCL_IB_HCA)"},
    {.id = "mtu-differs",
     .title = "An interface has a smaller MTU than the other RDMA interfaces",
     .why = "its packets carry less than those of the other rails; if only a switch port has the "
            "smaller MTU, large packets are lost while small ones pass",
     .fix = "give the switch port, the interface and the other hosts the MTU of the other "
            "interfaces. Where the switch port keeps the smaller one, this cuts the host off: if "
            "the NIC is for other traffic, exclude it instead (NCCL_IB_HCA)"},
    {.id = "nic-for-other-traffic",
     .severity = kNote,
     .title = "A NIC with a small MTU seems to be for the management or the storage of the host",
     .why = "NCCL may use it as well, for example beside or in place of a faster one",
     .fix = "exclude it from jobs; leave its MTU as it is. If NCCL_IB_HCA is set, change that",
     .command = "export NCCL_IB_HCA='^={devices}'"},
    {.id = "link-lost-often",
     .title = "A port has lost its link several times since its counter was reset",
     .why = "each loss interrupts the jobs on it",
     .fix = "clean or replace the cable and the transceiver",
     .command = "dmesg -T | grep -i -E 'link (up|down)'"},
    {.id = "port-errors",
     .title = "Error counters of a port grow",
     .why = "packets are lost or damaged and sent again",
     .fix = "with symbol or link errors: replace the cable; with discards or packets out of "
            "sequence on RoCE: check PFC and ECN on the switch",
     .command = "grep . {folder}/counters/* {folder}/hw_counters/*"},
};

constexpr Kind kAddresses[] = {
    {.id = "gid-missing",
     .severity = kFailure,
     .title = "A RoCE port has no address in this network namespace",
     .why = "a connection over the port cannot be made",
     .fix = "give its interface an IP address; in a container, move the interface into the "
            "container's network namespace, or use --net=host",
     .command = "ip link set {netdev} up && ip address add ADDRESS/PREFIX dev {netdev}"},
    {.id = "gid-only-link-local",
     .title = "A RoCE port has only link-local addresses",
     .why = "it reaches only hosts of the same Ethernet segment",
     .fix = "give its interface an IP address",
     .command = "ip address add ADDRESS/PREFIX dev {netdev}"},
    {.id = "gid-only-v1",
     .title = "A port has addresses of RoCE v1 only",
     .why = "RoCE v1 cannot be routed, and ends that have v2 only cannot be reached",
     .fix = "load a driver with RoCE v2; some old adapters have only v1",
     .command = "grep . /sys/class/infiniband/{device}/ports/{port}/gid_attrs/types/*"},
    {.id = "gid-index-unusable",
     .severity = kFailure,
     .title = "NCCL_IB_GID_INDEX names an entry that is empty, link-local or of RoCE v1",
     .why = "an index is a place in the table of one port; other ports and hosts may have another "
            "address in it, or none",
     .fix = "let both ends choose matching addresses",
     .command = "unset NCCL_IB_GID_INDEX"},
    {.id = "address-twice",
     .severity = kFailure,
     .title = "Several interfaces have the same IP address",
     .why = "packets for one NIC arrive at another, so connections fail",
     .fix = "give each interface an address of its own",
     .command = "ip -brief address"},
    {.id = "interfaces-share-a-subnet",
     .title = "Several RDMA interfaces are in one IP subnet, and the kernel answers for all of "
              "them on each",
     .why = "packets for one NIC arrive at another, and connections fail or use one NIC only",
     .fix = "give each rail a subnet of its own, or set arp_ignore=1, arp_announce=2 and "
            "rp_filter=2 below net.ipv4.conf for each of these interfaces, in /etc/sysctl.d. Set "
            "for all interfaces, they may cut the host off, if it has addresses on loopback"},
    {.id = "bond-uses-one-port",
     .title = "A bond of two ports carries the traffic of a connection on one of them",
     .why = "the other port is idle, so a connection has half of the bandwidth",
     .fix = "use 802.3ad with xmit_hash_policy layer3+4 and several queue pairs, or no bond at "
            "all: Beeline uses both ports as rails",
     .command = "export NCCL_IB_QPS_PER_CONNECTION={count}"},
};

constexpr Kind kGpuDirect[] = {
    {.id = "gpudirect-no-way",
     .title = "Neither way to register GPU memory is there",
     .why = "data passes through host memory, which costs most of the bandwidth",
     .fix = "nvidia-peermem needs NVIDIA's RDMA drivers (DOCA-OFED). Without them, install "
            "NVIDIA's open kernel modules with Linux 5.12 or later: then dma-bufs are used",
     .command = "modprobe nvidia-peermem"},
    {.id = "peer-memory-other-kernel",
     .title = "nvidia-peermem was built for other RDMA drivers",
     .why = "it cannot be loaded, so it registers no GPU memory",
     .fix = "build the driver again after the RDMA drivers were installed; reinstalling NVIDIA's "
            "driver does the same",
     .command = "dkms install --force nvidia/{version} && modprobe nvidia-peermem"},
    {.id = "gpu-window-small",
     .title = "The window of a GPU on the PCI bus (BAR1) is small",
     .why = "only so much of the GPU's memory can be registered, so registrations fail",
     .fix = "turn on 'Above 4G decoding' and 'Resizable BAR' in the firmware of the host",
     .command = "nvidia-smi -q -d MEMORY | grep -A 3 BAR1"},
};

constexpr Kind kPcie[] = {
    {.id = "slow-link",
     .title = "A PCIe link is slower than both of its ends, or than the ports behind it",
     .why = "it limits all devices below it",
     .command = "lspci -vv -s {pci} | grep -E 'LnkCap:|LnkSta:'"},
    {.id = "far-nic",
     .severity = kNote,
     .title = "The NICs that NCCL uses for a GPU are not below its PCIe switch",
     .why = "NCCL does not use GPUDirect over that distance by default",
     .command = "beeline topo"},
    {.id = "gpu-without-nic",
     .title = "A GPU has no NIC of its own, unlike the others of its model",
     .why = "an adapter that has failed is gone from the PCI bus; the GPU then shares a NIC that "
            "is farther away, and each collective waits for it",
     .fix = "look for the adapter (dmesg, the firmware's log of the host), and reseat or replace "
            "it. If the host is built so, nothing is wrong",
     .command = "lspci -tv"},
    {.id = "slow-near-nic",
     .severity = kNote,
     .title = "NCCL does not use the nearest NIC of a GPU, because farther ones are faster",
     .why = "data takes a longer way through the host",
     .command = "beeline topo"},
    {.id = "hidden-tree",
     .title = "The PCI tree is hidden, as in many virtual machines",
     .why = "NCCL cannot tell which NIC is near which GPU, and does not use GPUDirect by default",
     .fix = "set NCCL_TOPO_FILE to the provider's description of the machine type",
     .command = "export NCCL_TOPO_FILE=FILE"},
    {.id = "acs-redirects",
     .title = "PCI access control (ACS) sends transfers between GPU and NIC through the processor",
     .why = "GPUDirect is slow, or hangs",
     .fix = "turn it off in the firmware to keep it off after a reboot. Leave it on if virtual "
            "machines use the devices, and turn on ATS instead",
     .command = "setpci -s {pci} ECAP_ACS+0x6.w=0000"},
    {.id = "iommu-translates",
     .title = "The IOMMU translates the addresses of a device",
     .why = "transfers between GPU and NIC take the way through the processor, or are refused",
     .fix = "boot with iommu=pt: add it to GRUB_CMDLINE_LINUX in /etc/default/grub and call "
            "update-grub; on RHEL: grubby --update-kernel=ALL --args=iommu=pt",
     .command = "cat /proc/cmdline"},
    {.id = "numa-unknown",
     .severity = kNote,
     .title = "A device has no NUMA node on a host with several",
     .why = "threads may run far from the NIC",
     .fix = "update the firmware of the host; in a virtual machine, ask for its NUMA topology"},
    {.id = "virtual-and-physical",
     .severity = kNote,
     .title = "NICs are visible as physical and as virtual functions",
     .why = "both share one port, and NCCL takes them for two NICs",
     .fix = "use the ones or the others",
     .command = "export NCCL_IB_HCA='^={devices}'"},
};

constexpr Kind kLimits[] = {
    {.id = "memlock-low",
     .severity = kFailure,
     .title = "The limit on locked memory is low",
     .why = "RDMA locks every buffer, so registrations fail with 'Cannot allocate memory'",
     .fix = "only root can raise it. For good: memlock in /etc/security/limits.conf and a new "
            "login; LimitMEMLOCK=infinity in the unit of slurmd, sshd or containerd; docker run "
            "--ulimit memlock=-1",
     .command = "ulimit -l unlimited"},
    {.id = "files-limit-low",
     .title = "The limit on open files is low",
     .why = "NCCL opens several for each peer, and large jobs fail with 'Too many open files'",
     .fix = "for good: nofile in /etc/security/limits.conf, or LimitNOFILE in the unit of slurmd "
            "or containerd",
     .command = "ulimit -n 65536"},
    {.id = "rdma-cgroup-limit",
     .severity = kFailure,
     .title = "The RDMA cgroup of this process is used up, or allows nothing",
     .why = "queue pairs and registrations fail with 'Cannot allocate memory', although there is "
            "memory",
     .command = "echo '{device} hca_handle=max hca_object=max' > {folder}/rdma.max"},
    {.id = "shared-memory-small",
     .title = "/dev/shm is small",
     .why = "NCCL keeps buffers between the ranks of a host there, and fails with 'No space left "
            "on device'",
     .fix = "docker run --shm-size=16g or --ipc=host; in Kubernetes an emptyDir with medium: "
            "Memory at /dev/shm",
     .command = "mount -o remount,size=16g /dev/shm"},
};

constexpr Kind kProcessors[] = {
    {.id = "processors-few",
     .title = "This process may use one processor only",
     .why = "NCCL's threads wait for each other and for the application",
     .fix = "give each rank several processors: srun --cpus-per-task=8, mpirun --bind-to none",
     .command = "taskset -pc 0-{last} $$"},
    {.id = "processors-far",
     .title = "This process may use no processor that is near a NIC",
     .why = "each message crosses the link between the processors",
     .fix = "bind each rank to the processors of its GPU: srun --cpu-bind=none or a map, and NCCL "
            "chooses",
     .command = "taskset -pc {near} $$"},
    {.id = "clock-governor",
     .severity = kNote,
     .title = "The processors save power",
     .why = "a thread that waits for messages wakes up at a low clock rate, so latency varies",
     .command = "cpupower frequency-set -g performance"},
    {.id = "numa-balancing",
     .severity = kNote,
     .title = "The kernel moves memory between NUMA nodes by itself",
     .why = "it interrupts the threads that send, and does not help memory that is locked",
     .command = "sysctl -w kernel.numa_balancing=0"},
};

constexpr Kind kQos[] = {
    {.id = "traffic-class-is-dscp",
     .title = "The traffic class looks like a DSCP",
     .why = "the traffic class is four times the DSCP; with this value the packets are in another "
            "class, which may drop them",
     .fix = "add 2 if the switches use ECN",
     .command = "export {variable}={class}"},
    {.id = "traffic-class-differs",
     .title = "The adapter replaces the traffic class that is set for NCCL",
     .why = "the packets are in another class than intended",
     .fix = "set both to the class for which PFC is on",
     .command = "echo {class} > {folder}/traffic_class"},
};

constexpr Kind kSettings[] = {
    {.id = "turned-off",
     .severity = kFailure,
     .title = "A variable turns off all RDMA devices",
     .why = "NCCL falls back to TCP sockets",
     .command = "unset {variable}"},
    {.id = "other-network",
     .severity = kFailure,
     .title = "NCCL_NET names another network",
     .why = "NCCL does not use Beeline",
     .command = "export NCCL_NET=Beeline"},
    {.id = "plugin-not-named",
     .severity = kNote,
     .title = "NCCL_NET_PLUGIN does not name Beeline here",
     .why = "unless the variable names Beeline, NCCL loads another plugin or none",
     .fix = "set them for all ranks of the job",
     .command = "export NCCL_NET_PLUGIN=beeline NCCL_NET=Beeline"},
    {.id = "plugin-not-found",
     .severity = kFailure,
     .title = "NCCL cannot load the plugin",
     .why = "NCCL falls back to another network, or stops if NCCL_NET=Beeline",
     .fix = "set it for all ranks of the job, as beeline env prints it: the loader must find the "
            "file (ldconfig -p, LD_LIBRARY_PATH), and libraries that it needs. sudo removes "
            "LD_LIBRARY_PATH: call the doctor as the user of the job",
     .command = "export NCCL_NET_PLUGIN=beeline "
                "LD_LIBRARY_PATH={folder}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"},
    {.id = "plugin-other-file",
     .severity = kNote,
     .title = "NCCL loads another plugin file than the one that was installed with beeline",
     .why = "the two may be of different versions, and all hosts of a job need the same one",
     .fix =
         "remove one of the two installations, or put the other folder first in LD_LIBRARY_PATH"},
    {.id = "device-filter-leaves-none",
     .severity = kFailure,
     .title = "The device filter leaves none of the devices",
     .why = "NCCL falls back to TCP sockets",
     .fix = "name devices that this host has",
     .command = "unset {variable}"},
    {.id = "device-filter-prefix",
     .title = "The device filter selects more devices than it names",
     .why =
         "without '=', a name selects all devices that begin with it, such as mlx5_10 for mlx5_1",
     .command = "export {variable}='{exact}'"},
    {.id = "setting-unknown",
     .title = "The name of a variable is unknown",
     .why = "it has no effect",
     .fix = "the names are in docs/parameters.md",
     .command = "unset {variable}"},
    {.id = "setting-refused",
     .title = "The value of a variable is out of range or cannot be understood",
     .why = "the default is used instead; NCCL's own transport cuts such a value without saying so",
     .command = "unset {variable}"},
    {.id = "settings-without-effect",
     .severity = kNote,
     .title = "Variables of NCCL's own transport are set",
     .why = "they have no effect on Beeline"},
    {.id = "timeout-long",
     .title = "The timeout (BEELINE_TIMEOUT or NCCL_IB_TIMEOUT) is 20 or more",
     .why = "a connection that has no other path waits for that time before its path is made anew, "
            "instead of 0.5 to 2 s",
     .fix = "or unset the variable where your site sets it",
     .command = "export BEELINE_TIMEOUT=14"},
    {.id = "one-sided-beside-plugin",
     .severity = kNote,
     .title = "NCCL's one-sided transfers (GIN, RMA) are set up",
     .why = "NCCL moves one-sided transfers with its own code: Beeline's recovery does not apply, "
            "and beeline top and hang do not show them. Send, receive and collectives use Beeline"},
    {.id = "gdr-level-number",
     .severity = kNote,
     .title = "NCCL_NET_GDR_LEVEL is a number",
     .why = "the numbers have changed their meaning between versions of NCCL",
     .fix = "write LOC, PIX, PXB, PHB or SYS",
     .command = "export NCCL_NET_GDR_LEVEL=PHB"},
    {.id = "nccl-conf",
     .severity = kNote,
     .title = "A file of NCCL sets variables for all jobs",
     .why = "they apply in addition to the environment, and are easily forgotten",
     .fix = "check that they are meant for this fabric",
     .command = "cat {file}"},
    {.id = "socket-interface-missing",
     .severity = kFailure,
     .title = "NCCL_SOCKET_IFNAME matches no interface of this host",
     .why = "neither NCCL nor Beeline can connect its control channels",
     .fix = "name an interface that all hosts have, or exclude some: ^docker,lo",
     .command = "unset NCCL_SOCKET_IFNAME"},
};

constexpr Kind kSoftware[] = {
    {.id = "nccl-forgets-plugin",
     .title = "This NCCL may stop using its plugin",
     .why = "NCCL 2.27.3 to 2.29.7 no longer uses it once a process has destroyed its last "
            "communicator; later communicators then use another network",
     .fix = "or use a later NCCL",
     .command = "export NCCL_NET_PLUGIN_REF_COUNT=1"},
    {.id = "several-nccl",
     .severity = kNote,
     .title = "Several versions of libnccl are installed",
     .why = "which one a job loads depends on LD_LIBRARY_PATH; PyTorch brings one of its own",
     .fix = "the log of the job says which one it is, in the line 'NCCL version'"},
    {.id = "kernel-log",
     .title = "The kernel has reported a fault of a device",
     .why = "the device may be slow or fail again",
     .command = "dmesg -T | grep -i -E '{pattern}'"},
};

// Found by beeline doctor --peer.
// Found by beeline doctor --peer.
constexpr Kind kBetweenHosts[] = {
    {.id = "host-not-examined",
     .severity = kFailure,
     .title = "The doctor does not run on a host",
     .why = "nothing is known of this host, and none of its rails was tried",
     .fix = "read the messages before this report, and check that the command of --launch works "
            "and that the same beeline is in the same folder there"},
    {.id = "host-not-probed",
     .severity = kFailure,
     .title = "The plugin does not work on a host, or stops working",
     .why = "a job that uses this host fails, or its traffic goes over TCP sockets",
     .fix = "run beeline doctor on that host"},
    {.id = "host-unreachable",
     .severity = kFailure,
     .title = "No rail of a host reaches another host",
     .why = "a job that uses this host fails when its ranks connect",
     .fix = "compare the addresses and the subnets of the hosts (ibv_devinfo -v), and check the "
            "switch; if no address answers (ping -I NETDEV ADDRESS), the network is at fault"},
    {.id = "rail-unreachable",
     .severity = kFailure,
     .title = "A rail reaches no rail of other hosts",
     .why =
         "connections over this rail fail; with recovery, they use the other rails and are slower",
     .fix = "check the address of this rail (rdma link, show_gids), its cable and its port of the "
            "switch"},
    {.id = "pair-unreachable",
     .severity = kFailure,
     .title = "Two rails do not reach each other, although each reaches others",
     .why = "jobs fail or not depending on which GPUs they get",
     .fix = "check the route between the two (ip route get ADDRESS oif NETDEV), their partition "
            "keys, and access lists of the switches"},
    {.id = "rails-apart",
     .severity = kNote,
     .title = "The rails are on networks that do not reach each other",
     .why = "as in a rail-optimized fabric without a spine; NCCL then has to use rails of the same "
            "position (NCCL_CROSS_NIC=0)"},
    {.id = "data-wrong",
     .severity = kFailure,
     .title = "Other data arrives than was sent",
     .why = "results of jobs are wrong",
     .fix = "do not use this rail; exchange the adapter, or with GPU memory update its driver"},
    {.id = "rail-slow",
     .title = "A rail is slower than others of its speed",
     .why = "a collective is as slow as its slowest rail",
     .fix = "check on its host the PCIe link and the counters of its port with beeline doctor, "
            "then its cable and its port of the switch"},
    {.id = "rails-below-their-ports",
     .title = "All rails of one speed are slow, compared with their ports",
     .why = "a collective is as slow as they are; none of them stands out, so the cause is one "
            "that they share",
     .fix = "look on both hosts for PCIe slots that are too narrow or old (beeline topo), the "
            "IOMMU and memory that is far from the NICs, and on RoCE for PFC or ECN that no switch "
            "port has; measure one pair with beeline perf stream"},
    {.id = "pair-slow",
     .title = "The path between two rails is slower than others",
     .why = "a collective is as slow as its slowest path",
     .fix = "look for a congested or degraded link between the switches of these two rails"},
};

constexpr Area kAreas[] = {
    {"devices", kDevices},
    {"ports", kPorts},
    {"addresses", kAddresses},
    {"GPUDirect", kGpuDirect},
    {"PCIe", kPcie},
    {"limits", kLimits},
    {"processors", kProcessors},
    {"quality of service", kQos},
    {"settings", kSettings},
    {"software", kSoftware},
    {"between hosts", kBetweenHosts},
};

}  // namespace

std::span<const Area> areas() noexcept { return kAreas; }

const Kind* find_kind(std::string_view id) noexcept {
  for (const Area& area : kAreas) {
    for (const Kind& kind : area.kinds) {
      if (kind.id == id) return &kind;
    }
  }
  return nullptr;
}

}  // namespace beeline::checks
