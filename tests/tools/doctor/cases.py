# SPDX-License-Identifier: Apache-2.0
"""Hosts with faults, and what `beeline doctor` must find on each: all of it, and nothing else.

A case changes a healthy host. It returns the findings as (id, severity, subject)."""

import hosts

FAILURE, WARNING, NOTE, UNKNOWN = "failure", "warning", "note", "unknown"
CASES = {}


def case(**options):
    """Registers a case: its name is that of the function, and the options are those of the host."""
    def register(change):
        CASES[change.__name__] = (change, options)
        return change
    return register


@case()
def healthy_roce(_host):
    return []


@case(is_infiniband=True)
def healthy_infiniband(_host):
    return []


@case(pairs=8)
def healthy_with_eight_rails(_host):
    return []


# --- machines that people have, and settings that are usual there: no failure and no warning ---

def machine(name, build, *notes, change=lambda host: None, **options):
    def make(host):
        host.tree = hosts.machine(build, **options).tree
        change(host)
        return list(notes)
    CASES["healthy: " + name] = (make, {"pairs": 0})


def ipv6_only(n):
    return ((f"fe80:0000:0000:0000:0000:00ff:fe00:{n:04x}", ""), (hosts.IPV6.format(n=n), ""))


def in_a_vlan(n):
    return (*ipv6_only(n), (f"0000:0000:0000:0000:0000:ffff:0a01:{n:02x}05", ".100"))


def legacy_peer_memory(host):
    closed_driver(host)
    host.drop("/sys/module/nvidia_peermem")
    host.put("/sys/module/nv_peer_mem/version", "1.2-0")
    host.put("/proc/sys/kernel/osrelease", "4.18.0-305.el8.x86_64")


def only_dma_bufs(host):
    host.drop("/sys/module/nvidia_peermem")


def amd(host):
    host.drop("/proc/driver/nvidia")
    host.drop("/sys/module/nvidia_peermem")


def arm(host):
    host.put("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41")


def bonds(host):
    for n in range(4):
        bond(host, "IEEE 802.3ad Dynamic link aggregation", "layer3+4 (1)", n)
    host.environment("NCCL_IB_QPS_PER_CONNECTION=2")


def virtual(host):
    host.put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme lm hypervisor")
    host.environment("NCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml", "NCCL_SOCKET_IFNAME=eno1")


def second_ports_without_a_cable(host):
    for n in (8, 9):
        host.port(n, "state", "1: DOWN")
        host.port(n, "phys_state", "3: Disabled")


ROCE = {"layer": "Ethernet"}
IDLE = {"now": "2.5 GT/s PCIe"}
IN_BAND_NOTE = ("nic-for-other-traffic", NOTE, "mlx5_8 port 1")
machine("DGX H100, InfiniBand", hosts.dgx_h100)
machine("DGX H100, boards not readable", hosts.dgx_h100, board="")
machine("DGX H100, storage without cables", hosts.dgx_h100, *(("port-not-active", NOTE, f"mlx5_{n} port 1") for n in (8, 9)),
        change=second_ports_without_a_cable)
machine("DGX H100, storage without links", hosts.dgx_h100, *(("port-not-active", NOTE, f"mlx5_{n} port 1") for n in (8, 9)),
        change=lambda host: down(host, 8, 9))
machine("workstation, second card without a cable", hosts.workstation_with_spare, ("port-not-active", NOTE, "mlx5_1 port 1"),
        *(("far-nic", NOTE, f"GPU {n:04x}:01:00.0") for n in (1, 2)), nodes=1, sockets_of=1,
        change=lambda host: down(host, 1, rate="40 Gb/sec (4X QDR)"))
machine("DGX H100, idle GPUs", hosts.dgx_h100, gpu=IDLE)
machine("HGX, RoCE", hosts.rails, **ROCE)
machine("HGX, InfiniBand, in-band Ethernet", hosts.with_in_band, IN_BAND_NOTE)
machine("HGX, RoCE, in-band Ethernet", hosts.with_in_band, IN_BAND_NOTE, **ROCE)
machine("HGX, RoCE, in-band Ethernet in a bridge", hosts.with_in_band, IN_BAND_NOTE,
        ("gid-only-link-local", NOTE, "mlx5_8 port 1"), change=lambda host: drop_gids(host, 8, (2, 3)), **ROCE)
machine("HGX, RoCE, IPv6 only", hosts.rails, addresses=ipv6_only, **ROCE)
machine("HGX, RoCE, VLAN", hosts.rails, addresses=in_a_vlan, **ROCE)
machine("HGX, RoCE, bonds", hosts.rails, nics=4, change=bonds, **ROCE)
machine("HGX, RoCE, MTU 4200", hosts.rails, mtu=4200, **ROCE)
machine("HGX, legacy nv_peer_mem", hosts.rails, change=legacy_peer_memory)
machine("HGX, dma-bufs only", hosts.rails, change=only_dma_bufs)
machine("HGX, 4 nodes for each socket", hosts.rails, nodes=8)
machine("MI300X, bnxt", hosts.mi300x, change=amd)
machine("Grace, DMA-FQ", hosts.grace, *(("far-nic", NOTE, f"GPU {n:04x}:01:00.0") for n in (1, 3, 5, 7)), change=arm)
machine("workstation", hosts.workstation, *(("far-nic", NOTE, f"GPU {n:04x}:01:00.0") for n in (1, 2)), nodes=1, sockets_of=1)
machine("virtual machine of Azure", hosts.azure, ("nic-for-other-traffic", NOTE, "mlx5_an0 port 1"), change=virtual)
machine("Oracle, 16 ports", hosts.oci, change=lambda host: host.environment("NCCL_IB_TC=41", "NCCL_IB_TIMEOUT=16"))
machine("8 GPUs, 4 NICs", hosts.rails, nics=4)
machine("4 A100, 4 NICs", hosts.rails, gpus=4, nics=4, rate=hosts.HDR, model="MT4123")
machine("4 A100, 2 NICs", hosts.rails, gpus=4, nics=2, rate=hosts.HDR, model="MT4123", **ROCE)
machine("8 GPUs, 1 NIC", hosts.one_for_all,
        *(("far-nic", NOTE, f"GPU {domain:04x}:{0x10 + port:02x}:00.0") for domain in (1, 2) for port in range(4)))


# --- devices ---

@case()
def no_driver_loaded(host):
    host.drop("/sys/class/infiniband")
    return [("no-rdma-device", FAILURE, "")]


@case()
def neither_driver_nor_library(host):
    host.drop("/sys/class/infiniband")
    host.verbs("error no usable libibverbs (tried libibverbs.so.1)")
    return [("no-rdma-device", FAILURE, ""), ("libibverbs-missing", FAILURE, "")]


@case()
def no_adapter(host):
    for name in ("/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/net"):
        host.drop(name)
    for n in range(2):
        host.drop(f"/sys/bus/pci/devices/{hosts.nic_address(n)}")
    return [("no-rdma-device", FAILURE, "")]


@case()
def container_without_devices(host):
    host.drop("/dev/infiniband")
    host.verbs("list", "device mlx5_0 open device: No such file or directory",
               "device mlx5_1 open device: No such file or directory")
    return [("device-node-missing", FAILURE, "mlx5_0"), ("device-node-missing", FAILURE, "mlx5_1")]


@case()
def ib_uverbs_not_loaded(host):
    host.drop("/sys/class/infiniband_verbs")
    host.verbs("list")
    return [("device-node-missing", FAILURE, "mlx5_0"), ("device-node-missing", FAILURE, "mlx5_1")]


@case()
def device_cgroup_refuses_one(host):
    host.refuse("/dev/infiniband/uverbs1")
    host.verbs("list", "device mlx5_0", "mtu mlx5_0 1 4096", "device mlx5_1 open device: Operation not permitted")
    return [("device-node-denied", FAILURE, "mlx5_1"), ("far-nic", NOTE, "GPU 0000:33:00.0")]


@case(pairs=4)
def container_with_one_of_four_devices(host):
    for n in (0, 1, 3):
        host.drop(f"/dev/infiniband/uverbs{n}")
        drop_gids(host, n, range(4))
    host.verbs("list", "device mlx5_2", *(f"device mlx5_{n} open device: No such file or directory" for n in (0, 1, 3)))
    return [finding for n in (0, 1, 3) for finding in
            (("device-node-missing", NOTE, f"mlx5_{n}"), ("far-nic", NOTE, f"GPU {hosts.gpu_address(n)}"))]


@case()
def provider_not_installed(host):
    host.verbs("list")
    return [("provider-missing", FAILURE, "mlx5_0"), ("provider-missing", FAILURE, "mlx5_1")]


@case()
def library_not_installed(host):
    host.verbs("error no usable libibverbs (tried libibverbs.so.1)")
    return [("libibverbs-missing", FAILURE, "")]


@case()
def device_fails_to_open(host):
    host.verbs("list", "device mlx5_0", "device mlx5_1 open device: Cannot allocate memory")
    return [("device-not-opened", FAILURE, "mlx5_1"), ("far-nic", NOTE, "GPU 0000:33:00.0")]


@case()
def firmware_of_one_is_older(host):
    host.put("/sys/class/infiniband/mlx5_1/fw_ver", "28.36.1010")
    return [("firmware-differs", WARNING, "MT4129")]


@case()
def iwarp_adapter(host):
    host.put("/sys/class/infiniband/mlx5_1/node_type", "4: RNIC")
    return [("iwarp-device", NOTE, "mlx5_1")]


def add_function(host, n, name, value):
    """Another port of NIC n's card, a function of its own without a cable: mlx5_9."""
    address = hosts.nic_address(n)[:-1] + "1"
    nic = f"/sys/bus/pci/devices/{hosts.nic_address(n)}"
    folder = host.at(nic)[0][hosts.nic_address(n)]["@link"].rsplit("/", 1)[0] + "/" + address
    host.put(f"/sys/bus/pci/devices/{address}", {"@link": folder})
    host.put("/sys/class/infiniband/mlx5_9", {"@link": f"{folder[3:]}/infiniband/mlx5_9"})
    for path, text in (("ports/1/state", "4: ACTIVE"), ("ports/1/link_layer", "Ethernet"), (f"ports/1/{name}", value)):
        host.put(f"/sys/class/infiniband/mlx5_9/{path}", text)
    host.tree["verbs"] += "device mlx5_9\n"


@case()
def sysfs_not_mounted(host):
    host.tree["sys"] = {}
    return [("no-rdma-device", FAILURE, "")]


# --- ports ---

@case(is_infiniband=True)
def cable_out(host):
    host.port(0, "state", "1: DOWN")
    host.port(0, "phys_state", "2: Polling")
    return [("port-not-active", WARNING, "mlx5_0 port 1"), ("far-nic", NOTE, "GPU 0000:13:00.0")]


@case()
def second_port_of_a_card_without_a_cable(host):
    add_function(host, 1, "state", "1: DOWN")
    return [("port-not-active", NOTE, "mlx5_9 port 1")]


@case()
def nic_for_other_traffic_is_excluded(host):
    host.port(1, "rate", "100 Gb/sec (4X EDR)")
    host.put("/sys/class/net/eth1/mtu", 1500)
    drop_gids(host, 1, (2, 3))
    host.environment("NCCL_IB_HCA==mlx5_0", "NCCL_IB_GID_INDEX=3")
    return [("far-nic", NOTE, "GPU 0000:33:00.0")]


def down(host, *nics, rate="10 Gb/sec (4X SDR)"):
    """With the rate that the kernel reports for an InfiniBand port without a link."""
    for n in nics:
        host.port(n, "state", "1: DOWN")
        host.port(n, "phys_state", "2: Polling")
        host.port(n, "rate", rate)
    return [("port-not-active", WARNING, f"mlx5_{n} port 1") for n in nics]


def far_nics(*gpus):
    """Of a machine of hosts.rails()."""
    return [("far-nic", NOTE, f"GPU {n + 1:04x}:10:00.0") for n in gpus]


@case(pairs=0)
def all_rails_down_while_the_storage_works(host):
    host.tree = hosts.machine(hosts.dgx_h100).tree
    return [*down(host, *range(8)), *far_nics(*range(8))]


@case(pairs=0)
def all_rails_down_while_in_band_ethernet_works(host):
    host.tree = hosts.machine(hosts.with_in_band).tree
    return [*down(host, *range(8), rate="2.5 Gb/sec (1X SDR)"), IN_BAND_NOTE, *far_nics(*range(8))]


@case(pairs=0)
def all_rails_down_and_more_cards_for_the_host_work(host):
    """Of the rails there is one card, so only its place below the switch of the GPU tells what it is."""
    def build(builder):
        hosts.rails(builder, gpus=1, nics=1)
        for n in range(1, 5):
            builder.nic(builder.root_port(1), 1, f"mlx5_{n}", "Ethernet", **{**hosts.IN_BAND, "interface": f"ens{n}"})
    host.tree = hosts.machine(build).tree
    return [*down(host, 0), *far_nics(0), *(("nic-for-other-traffic", NOTE, f"mlx5_{n} port 1") for n in range(1, 5))]


@case(pairs=0)
def all_rails_of_a_host_without_gpus_down(host):
    def build(builder):
        for n in range(4):
            builder.nic(builder.root_port(), 0, f"mlx5_{n}", "InfiniBand")
        builder.nic(builder.root_port(), 0, "mlx5_4", "Ethernet", **hosts.IN_BAND)
    host.tree = hosts.machine(build).tree
    return [*down(host, *range(4)), ("nic-for-other-traffic", NOTE, "mlx5_4 port 1")]


@case(pairs=0)
def some_rails_down(host):
    host.tree = hosts.machine(hosts.dgx_h100).tree
    return [*down(host, *range(5)), *far_nics(*range(5))]


@case(pairs=0)
def all_rails_and_the_storage_down(host):
    host.tree = hosts.machine(hosts.dgx_h100).tree
    return [("no-active-port", FAILURE, ""), *down(host, *range(8)),
            *((id_, NOTE, subject) for id_, _, subject in down(host, 8, 9))]


@case()
def all_ports_down(host):
    for n in range(2):
        host.port(n, "state", "1: DOWN")
        host.port(n, "phys_state", "3: Disabled")
    return [("no-active-port", FAILURE, ""), ("port-not-active", WARNING, "mlx5_0 port 1"),
            ("port-not-active", WARNING, "mlx5_1 port 1")]


@case(is_infiniband=True)
def port_waits_for_a_subnet_manager(host):
    host.port(1, "state", "2: INIT")
    return [("no-subnet-manager", WARNING, "mlx5_1 port 1"), ("far-nic", NOTE, "GPU 0000:33:00.0")]


@case(pairs=4)
def port_at_half_its_rate(host):
    host.port(2, "rate", "200 Gb/sec (2X NDR)")
    return [("port-slow", WARNING, "mlx5_2 port 1"), ("slow-near-nic", NOTE, "mlx5_2"),
            ("far-nic", NOTE, "GPU 0000:53:00.0")]


@case()
def small_mtu(host):
    for n in range(2):
        host.put(f"/sys/class/net/eth{n}/mtu", 1500)
    return [("mtu-small", WARNING, "mlx5_0 port 1"), ("mtu-small", WARNING, "mlx5_1 port 1")]


@case(pairs=4)
def mtu_of_one_differs(host):
    host.put("/sys/class/net/eth3/mtu", 1500)
    return [("mtu-differs", WARNING, "mlx5_3 port 1")]


@case(pairs=4)
def mtus_with_the_same_payload(host):
    host.put("/sys/class/net/eth3/mtu", 4200)
    return []


@case()
def flapping_link(host):
    host.port(1, "counters/link_downed", 37)
    return [("link-lost-often", WARNING, "mlx5_1 port 1")]


@case()
def link_lost_four_times(host):
    host.port(1, "counters/link_downed", 4)
    return []


@case()
def damaged_cable(host):
    host.put("/later/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", 12)
    return [("port-errors", WARNING, "mlx5_0 port 1")]


@case()
def counter_was_reset(host):
    host.port(0, "counters/symbol_error", 65535)
    host.put("/later/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", 3)
    return []


@case()
def counter_of_32_bits_starts_anew(host):
    host.port(0, "hw_counters/packet_seq_err", 0xffffffff)
    host.put("/later/sys/class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err", 2)
    return [("port-errors", WARNING, "mlx5_0 port 1")]


@case()
def counters_read_once(host):
    host.drop("/later")
    return [("port-errors", UNKNOWN, "")]


@case()
def state_of_a_port_not_readable(host):
    for n in range(2):
        host.refuse(f"/sys/class/infiniband/mlx5_{n}/ports/1/state")
    return [("port-not-active", UNKNOWN, f"mlx5_{n} port 1") for n in range(2)]


# --- addresses ---

def drop_gids(host, nic, indices):
    for index in indices:
        for name in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            host.drop(f"/sys/class/infiniband/mlx5_{nic}/ports/1/{name}/{index}")


@case()
def addresses_in_another_network_namespace(host):
    drop_gids(host, 1, range(4))
    return [("gid-missing", FAILURE, "mlx5_1 port 1")]


@case()
def interface_without_ip_address(host):
    drop_gids(host, 0, (2, 3))
    return [("gid-only-link-local", WARNING, "mlx5_0 port 1")]


@case()
def roce_v1_only(host):
    drop_gids(host, 0, (1, 3))
    return [("gid-only-v1", WARNING, "mlx5_0 port 1")]


@case()
def gid_index_is_valid(host):
    host.environment("NCCL_IB_GID_INDEX=3")
    return []


@case()
def two_tables_apart(host):
    drop_gids(host, 1, (2, 3))
    for name, value in (("gids", "0000:0000:0000:0000:0000:ffff:0a00:0105"), ("gid_attrs/types", "RoCE v2"),
                        ("gid_attrs/ndevs", "eth1")):
        host.port(1, f"{name}/5", value)
    host.environment("NCCL_IB_GID_INDEX=3")
    return [("gid-index-unusable", FAILURE, "mlx5_1 port 1")]


@case()
def gid_index_of_roce_v1(host):
    host.environment("NCCL_IB_GID_INDEX=2")
    return [("gid-index-unusable", FAILURE, "mlx5_0 port 1"), ("gid-index-unusable", FAILURE, "mlx5_1 port 1")]


def one_subnet(host):
    host.put("/proc/net/route", "Iface\tDestination\tGateway\n"
             + "\n".join(f"eth{n}\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF" for n in range(2)))


@case()
def rails_in_one_subnet(host):
    one_subnet(host)
    return [("interfaces-share-a-subnet", WARNING, "eth0, eth1")]


@case()
def rails_in_one_subnet_with_settings(host):
    one_subnet(host)
    for name, value in (("arp_ignore", 1), ("arp_announce", 2), ("rp_filter", 2)):
        host.put(f"/proc/sys/net/ipv4/conf/all/{name}", value)
    return []


@case()
def link_local_routes_on_each_interface(host):
    host.put("/proc/net/route", "Iface\tDestination\tGateway\n"
             + "\n".join(f"eth{n}\t0000FEA9\t00000000\t0001\t0\t0\t0\t0000FFFF" for n in range(2))
             + "\neth0\t1\t00000000")
    return []


@case()
def one_address_on_two_interfaces(host):
    for index in (2, 3):
        host.port(1, f"gids/{index}", "0000:0000:0000:0000:0000:ffff:0a00:0005")
    one_subnet(host)
    return [("address-twice", FAILURE, "eth0, eth1")]


def bond(host, mode, policy, nic=0):
    name = f"bond{nic}"
    host.put(f"/proc/net/bonding/{name}", f"Bonding Mode: {mode}\nTransmit Hash Policy: {policy}\nMII Status: up")
    for n in range(4):
        host.port(nic, f"gid_attrs/ndevs/{n}", name)
    host.put(f"/sys/class/net/{name}/mtu", 9000)


@case()
def bond_by_mac_addresses(host):
    bond(host, "IEEE 802.3ad Dynamic link aggregation", "layer2 (0)")
    return [("bond-uses-one-port", WARNING, "bond0")]


@case()
def bond_with_a_spare(host):
    bond(host, "fault-tolerance (active-backup)", "layer3+4 (1)")
    return [("bond-uses-one-port", WARNING, "bond0")]


@case()
def bond_by_ports(host):
    bond(host, "IEEE 802.3ad Dynamic link aggregation", "layer3+4 (1)")
    return []


# --- GPUDirect ---

def closed_driver(host):
    host.put("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Release Build")


@case()
def no_peer_memory_with_closed_driver(host):
    host.drop("/sys/module/nvidia_peermem")
    closed_driver(host)
    return [("gpudirect-no-way", WARNING, "")]


@case()
def no_peer_memory_with_open_driver(host):
    host.drop("/sys/module/nvidia_peermem")
    return []


@case()
def no_peer_memory_with_old_kernel(host):
    host.drop("/sys/module/nvidia_peermem")
    host.put("/proc/sys/kernel/osrelease", "5.4.0-186-generic")
    return [("gpudirect-no-way", WARNING, "")]


@case()
def peer_memory_for_another_kernel(host):
    host.drop("/sys/module/nvidia_peermem")
    closed_driver(host)
    host.kernel_says("nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client")
    return [("peer-memory-other-kernel", WARNING, "")]


@case()
def small_bar(host):
    host.function(hosts.gpu_address(1), "resource",
                  "0x0000380000000000 0x000038000fffffff 0x000000000014220c")
    return [("gpu-window-small", WARNING, "GPU 0000:33:00.0")]


@case()
def legacy_peer_memory_module(host):
    legacy_peer_memory(host)
    return []


# --- PCIe ---

@case()
def link_with_half_its_lanes(host):
    host.function(hosts.nic_address(0), "current_link_width", 8)
    return [("slow-link", WARNING, "mlx5_0")]


@case()
def slow_uplink_of_a_switch(host):
    for address in ("0000:11:00.0", "0000:10:01.0"):
        host.function(address, "current_link_speed", "8.0 GT/s PCIe")
    return [("slow-link", WARNING, "bridge 0000:11:00.0")]


@case()
def access_control_on(host):
    for port in range(2):
        host.function(hosts.bridge_address(1, port), "config", hosts.capability(0x001d))
    return [("acs-redirects", WARNING, "0000:32:00.0"), ("acs-redirects", WARNING, "0000:32:01.0")]


@case()
def source_validation_alone_is_no_fault(host):
    host.function(hosts.bridge_address(0, 0), "config", hosts.capability(0x0001))
    return []


@case()
def access_control_not_readable(host):
    for n in range(2):
        for port in range(2):
            host.function(hosts.bridge_address(n, port), "config", {"@hex": "00" * 64})
    return [("acs-redirects", UNKNOWN, "0000:12:00.0, 0000:12:01.0, 0000:32:00.0, 0000:32:01.0")]


@case()
def access_control_in_a_virtual_machine(host):
    host.put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme lm hypervisor")
    host.function(hosts.bridge_address(1, 0), "config", hosts.capability(0x001d))
    return []


@case()
def iommu_on(host):
    for n in range(2):
        host.function(hosts.nic_address(n), "iommu_group/type", "DMA-FQ")
    return [("iommu-translates", WARNING, "mlx5_0, mlx5_1")]


@case()
def numa_node_not_known(host):
    host.function(hosts.nic_address(0), "numa_node", -1)
    return [("numa-unknown", NOTE, "mlx5_0")]


@case()
def virtual_function_beside_the_physical_one(host):
    host.function(hosts.nic_address(1), "physfn", {"@link": "../../../../pci0000:10/" + hosts.nic_address(0)})
    return [("virtual-and-physical", NOTE, "mlx5_0")]


def lose_adapter(host, n, function):
    host.drop(f"/sys/class/infiniband/mlx5_{n}")
    host.drop(f"/sys/class/infiniband_verbs/uverbs{n}")
    host.drop(f"/sys/bus/pci/devices/{function}")
    host.drop(f"/dev/infiniband/uverbs{n}")
    host.verbs(*(line for line in host.tree["verbs"].splitlines() if f"mlx5_{n}" not in line))


@case(pairs=8, is_infiniband=True)
def one_adapter_of_eight_is_gone(host):
    lose_adapter(host, 3, hosts.nic_address(3))
    return [("gpu-without-nic", WARNING, "GPU 0000:73:00.0")]


@case(pairs=8, is_infiniband=True)
def one_adapter_of_eight_is_excluded(host):
    host.environment("NCCL_IB_HCA=^=mlx5_3")
    return [("far-nic", NOTE, "GPU 0000:73:00.0")]


@case(pairs=0)
def adapter_of_two_gpus_is_gone(host):
    host.tree = hosts.machine(hosts.rails, nics=4).tree
    lose_adapter(host, 2, "0003:12:00.0")
    return [("gpu-without-nic", WARNING, "GPU 0003:10:00.0, GPU 0003:11:00.0")]


@case(pairs=8)
def half_of_the_gpus_have_no_adapter(host):
    """As in a machine that is built so."""
    for n in range(4):
        lose_adapter(host, n, hosts.nic_address(n))
        host.drop(f"/sys/class/net/eth{n}")
    return [("far-nic", NOTE, f"GPU {hosts.gpu_address(n)}") for n in range(4)]


# --- limits ---

def limit_memory(host, value):
    host.put("/proc/self/limits", hosts.LIMITS.format(memlock=value))


@case()
def little_locked_memory(host):
    limit_memory(host, 8 << 20)
    return [("memlock-low", FAILURE, "")]


@case()
def little_locked_memory_with_the_capability(host):
    limit_memory(host, 8 << 20)
    host.put("/proc/self/status", "CapEff:\t0000000000004000\nCpus_allowed_list:\t0-63")
    return []


@case()
def little_locked_memory_in_a_user_namespace(host):
    little_locked_memory_with_the_capability(host)
    host.put("/proc/self/uid_map", "         0     100000      65536")
    return [("memlock-low", FAILURE, "")]


@case()
def limits_not_readable(host):
    host.refuse("/proc/self/limits")
    return [("memlock-low", UNKNOWN, "")]


@case()
def few_files(host):
    host.put("/proc/self/limits", hosts.LIMITS.format(memlock="unlimited").replace("1048576", "1024   "))
    return [("files-limit-low", WARNING, "")]


@case()
def rdma_cgroup_used_up(host):
    folder = "/sys/fs/cgroup/system.slice/slurmd.service"
    host.put(f"{folder}/rdma.max", "mlx5_0 hca_handle=2 hca_object=2000\nmlx5_1 hca_handle=max hca_object=max")
    host.put(f"{folder}/rdma.current", "mlx5_0 hca_handle=1 hca_object=1950\nmlx5_1 hca_handle=9 hca_object=7")
    return [("rdma-cgroup-limit", FAILURE, "mlx5_0")]


@case()
def shared_memory_of_docker(host):
    host.put("/proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k 0 0")
    return [("shared-memory-small", WARNING, "/dev/shm")]


# --- processors ---

@case()
def bound_to_one_processor(host):
    host.put("/proc/self/status", "CapEff:\t0\nCpus_allowed_list:\t5")
    return [("processors-few", WARNING, "")]


@case(pairs=1)
def bound_to_the_far_socket(host):
    host.put("/proc/self/status", "CapEff:\t0\nCpus_allowed_list:\t32-63")
    return [("processors-far", WARNING, "")]


@case()
def processors_save_power(host):
    host.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave")
    host.put("/proc/sys/kernel/numa_balancing", 1)
    return [("clock-governor", NOTE, ""), ("numa-balancing", NOTE, "")]


# --- quality of service ---

@case()
def traffic_class_is_a_dscp(host):
    host.environment("NCCL_IB_TC=26")
    return [("traffic-class-is-dscp", WARNING, "NCCL_IB_TC")]


@case()
def traffic_class_in_hexadecimal(host):
    host.environment("NCCL_IB_TC=0x6a")
    host.put("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106")
    return []


@case()
def traffic_class_of_oracle(host):
    host.environment("NCCL_IB_TC=41")
    return []


@case()
def adapter_has_another_traffic_class(host):
    host.environment("NCCL_IB_TC=106")
    host.put("/sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=96")
    host.put("/sys/class/infiniband/mlx5_1/tc/1/traffic_class", "Global tclass=106")
    return [("traffic-class-differs", WARNING, "mlx5_0 port 1")]


# --- settings ---

@case()
def turned_off(host):
    host.environment("NCCL_IB_DISABLE=1")
    return [("turned-off", FAILURE, "NCCL_IB_DISABLE")]


@case()
def another_network(host):
    host.environment("NCCL_NET=IB")
    return [("other-network", FAILURE, "NCCL_NET")]


@case()
def way_back_to_the_transport_of_nccl(host):
    plugins(host, NCCL_NET_PLUGIN="none", NCCL_NET="IB")
    return [("plugin-not-named", NOTE, "NCCL_NET_PLUGIN")]


@case()
def another_network_and_a_plugin_under_the_default_name(host):
    plugins(host, "try libnccl-net.so", "net Beeline", "file /usr/lib/libnccl-net.so", NCCL_NET="IB")
    return [("other-network", FAILURE, "NCCL_NET")]


@case()
def plugin_not_named(host):
    host.tree["environment"] = ""
    return [("plugin-not-named", NOTE, "NCCL_NET_PLUGIN")]


def plugins(host, *lines, **variables):
    """What the loader has found, with these variables."""
    host.tree["plugins"] = "".join(line + "\n" for line in ("own /opt/beeline-0.2.0~dev/lib", *lines))
    host.tree["environment"] = "".join(f"{name}={value}\n" for name, value in variables.items())


@case()
def job_that_needs_a_plugin_that_is_not_named(host):
    plugins(host, "try beelin", "error no such file", NCCL_NET_PLUGIN="beelin", NCCL_NET="Beeline")
    return [("plugin-not-named", FAILURE, "NCCL_NET_PLUGIN")]


@case()
def preset_of_a_container(host):
    plugins(host, "try spcx", "net SPCX", "file /opt/hpcx/lib/libnccl-net-spcx.so", NCCL_NET_PLUGIN="spcx")
    return [("plugin-not-named", NOTE, "NCCL_NET_PLUGIN")]


@case()
def preset_of_a_site_in_a_record_of_an_older_version(host):
    host.tree["environment"] = "NCCL_NET_PLUGIN=/opt/beeline/lib/libnccl-net-ofi.so\n"
    return [("plugin-not-named", NOTE, "NCCL_NET_PLUGIN")]


@case()
def plugin_that_the_loader_does_not_find(host):
    plugins(host, "try beeline", "error libnccl-net-beeline.so: cannot open shared object file",
            NCCL_NET_PLUGIN="beeline")
    return [("plugin-not-found", FAILURE, "NCCL_NET_PLUGIN")]


@case()
def plugin_that_a_file_of_nccl_names_wrongly(host):
    plugins(host, "try /x/beeline.so", "error no such file")
    host.put("/etc/nccl.conf", "NCCL_NET_PLUGIN=/x/beeline.so")
    return [("nccl-conf", NOTE, "/etc/nccl.conf"), ("plugin-not-found", FAILURE, "NCCL_NET_PLUGIN")]


@case()
def plugin_with_a_wrong_folder_beside_one_that_the_loader_finds(host):
    plugins(host, "searched own", "try /x/beeline.so", "error no such file", NCCL_NET_PLUGIN="/x/beeline.so")
    return [("plugin-not-found", FAILURE, "NCCL_NET_PLUGIN")]


@case()
def plugin_that_the_loader_does_not_find_in_a_record_without_folders(host):
    plugin_that_the_loader_does_not_find(host)
    host.tree["plugins"] = host.tree["plugins"].replace("/opt/beeline-0.2.0~dev/lib", "REPLACED")
    return [("plugin-not-found", FAILURE, "NCCL_NET_PLUGIN")]


@case()
def record_that_tried_another_name_than_a_file_of_nccl_has(host):
    """As older versions made them."""
    plugins(host, "try libnccl-net.so", "error libnccl-net.so: cannot open shared object file")
    host.put("/etc/nccl.conf", "NCCL_NET_PLUGIN=beeline")
    return [("nccl-conf", NOTE, "/etc/nccl.conf"), ("plugin-not-found", UNKNOWN, "NCCL_NET_PLUGIN")]


@case()
def other_library_of_that_name(host):
    plugins(host, "try beeline", "net Other", "file /x/libnccl-net-beeline.so", NCCL_NET_PLUGIN="beeline")
    return [("plugin-not-found", FAILURE, "NCCL_NET_PLUGIN")]


@case()
def second_plugin_of_a_list(host):
    plugins(host, "try spcx", "error no such file", "try beeline", "net Beeline", "file /opt/beeline/lib/x.so",
            NCCL_NET_PLUGIN="spcx,beeline", NCCL_NET="Beeline")
    return []


@case()
def plugin_under_the_default_name(host):
    plugins(host, "try libnccl-net.so", "net Beeline", "file /usr/lib/libnccl-net.so")
    return []


@case()
def plugin_of_another_installation(host):
    plugins(host, "try beeline", "net Beeline", "file /usr/lib/x.so", "other file", NCCL_NET_PLUGIN="beeline")
    return [("plugin-other-file", NOTE, "/usr/lib/x.so")]


@case()
def long_timeout_of_a_site(host):
    host.environment("NCCL_IB_TIMEOUT=22")
    return [("timeout-long", WARNING, "NCCL_IB_TIMEOUT")]


@case()
def long_timeout_of_a_site_that_beeline_does_not_use(host):
    host.environment("NCCL_IB_TIMEOUT=22", "BEELINE_TIMEOUT=14")
    return []


@case()
def long_timeout_before_which_connections_count_as_stalled(host):
    host.environment("NCCL_IB_TIMEOUT=22", "BEELINE_STALL_TIMEOUT=10s")
    return []


@case()
def long_timeout_without_recovery(host):
    host.environment("NCCL_IB_TIMEOUT=22", "BEELINE_RECOVERY=0")
    return []


@case()
def timeout_of_the_limit(host):
    host.environment("NCCL_IB_TIMEOUT=19")
    return []


@case()
def one_sided_transfers(host):
    host.environment("NCCL_GIN_TYPE=2", "NCCL_CTA_POLICY=2")
    return [("one-sided-beside-plugin", NOTE, "NCCL_GIN_TYPE, NCCL_CTA_POLICY")]


@case()
def one_sided_transfers_are_off(host):
    host.environment("NCCL_GIN_ENABLE=0", "NCCL_CTA_POLICY=0")
    return []


@case()
def filter_with_a_typing_error(host):
    host.environment("NCCL_IB_HCA=mlx4_0,mlx4_1")
    return [("device-filter-leaves-none", FAILURE, "NCCL_IB_HCA")]


@case(pairs=2)
def filter_selects_more_than_it_names(host):
    host.put("/sys/class/infiniband/mlx5_10", dict(host.tree["sys"]["class"]["infiniband"]["mlx5_1"]))
    host.put("/sys/class/infiniband_verbs/uverbs10/ibdev", "mlx5_10")
    host.put("/dev/infiniband/uverbs10", "")
    host.tree["verbs"] += "device mlx5_10\n"
    host.environment("NCCL_IB_HCA=mlx5_1")
    return [("device-filter-prefix", WARNING, "NCCL_IB_HCA"), ("far-nic", NOTE, "GPU 0000:13:00.0")]


@case()
def misspelled_parameter(host):
    host.environment("BEELINE_RAIL=2")
    return [("setting-unknown", WARNING, "BEELINE_RAIL")]


@case()
def misspelled_variables_of_nccl(host):
    """One is a letter away from a name that has an effect. A newer NCCL may have the other."""
    host.environment("NCCL_IB_GID_INDEXX=3", "NCCL_IB_GID=3")
    return [("setting-unknown", WARNING, "NCCL_IB_GID_INDEXX"), ("setting-unknown", NOTE, "NCCL_IB_GID")]


@case()
def variables_that_only_nccl_reads(host):
    host.environment("NCCL_IB_OOO_RQ=1", "NCCL_IB_RESILIENCY_PORT_FAILOVER=1")
    return [("settings-without-effect", NOTE, "")]


@case()
def retry_count_that_does_not_fit(host):
    host.environment("NCCL_IB_RETRY_CNT=15")
    return [("setting-refused", WARNING, "NCCL_IB_RETRY_CNT")]


@case()
def settings_of_another_transport(host):
    host.environment("NCCL_IB_MERGE_VFS=1")
    return [("settings-without-effect", NOTE, "")]


@case()
def level_as_a_number(host):
    host.environment("NCCL_NET_GDR_LEVEL=3")
    return [("gdr-level-number", NOTE, "NCCL_NET_GDR_LEVEL")]


@case()
def forgotten_file(host):
    host.put("/etc/nccl.conf", "# from the last cluster\nNCCL_IB_TIMEOUT=22\nNCCL_DEBUG=WARN")
    return [("nccl-conf", NOTE, "/etc/nccl.conf"), ("timeout-long", WARNING, "NCCL_IB_TIMEOUT")]


@case()
def file_that_turns_off_rdma(host):
    host.put("/etc/nccl.conf", "NCCL_IB_DISABLE=1")
    return [("nccl-conf", NOTE, "/etc/nccl.conf"), ("turned-off", FAILURE, "NCCL_IB_DISABLE")]


@case()
def file_of_the_user_before_that_of_the_host(host):
    host.environment("HOME=/home/user")
    host.put("/home/user/.nccl.conf", "NCCL_IB_DISABLE=0")
    host.put("/etc/nccl.conf", "NCCL_IB_DISABLE=1")
    return [("nccl-conf", NOTE, "/home/user/.nccl.conf"), ("nccl-conf", NOTE, "/etc/nccl.conf")]


@case()
def file_that_is_named_in_place_of_that_of_the_user(host):
    host.environment("HOME=/home/user", "NCCL_CONF_FILE=/dev/null")
    host.put("/home/user/.nccl.conf", "NCCL_IB_DISABLE=1")
    return []


@case()
def interface_of_another_host(host):
    host.environment("NCCL_SOCKET_IFNAME=bond0")
    return [("socket-interface-missing", FAILURE, "NCCL_SOCKET_IFNAME")]


# --- software ---

def nccl(host, folder, version):
    host.put(f"{folder}/libnccl.so.2", {"@link": f"libnccl.so.{version}"})


@case()
def nccl_that_forgets_its_plugin(host):
    nccl(host, "/usr/lib/x86_64-linux-gnu", "2.28.9")
    return [("nccl-forgets-plugin", WARNING, "")]


@case()
def two_of_nccl(host):
    nccl(host, "/usr/lib/x86_64-linux-gnu", "2.26.2")
    nccl(host, "/usr/local/lib", "2.30.7")
    return [("several-nccl", NOTE, "")]


@case()
def transceiver_too_hot(host):
    host.kernel_says("mlx5_core 0000:14:00.0: Port module event[error]: module 0, Cable error, High Temperature",
                     "usb 1-1: new high-speed USB device")
    return [("kernel-log", WARNING, "")]


@case()
def kernel_log_not_readable(host):
    host.refuse("/dev/kmsg")
    return [("kernel-log", UNKNOWN, "")]


# --- several at once ---

@case()
def virtual_machine_without_topology(host):
    for n in range(2):
        flat(host, n)
    host.put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme lm hypervisor")
    return [("hidden-tree", WARNING, "")]


def flat(host, n):
    """Moves GPU and NIC of a pair from their switch to the root bus."""
    folder = f"/sys/devices/pci0000:{0x10 + 0x20 * n:02x}"
    switch = f"{folder}/0000:{0x10 + 0x20 * n:02x}:01.0/0000:{0x11 + 0x20 * n:02x}:00.0"
    for port, address in enumerate((hosts.gpu_address(n), hosts.nic_address(n))):
        inside, name = host.at(f"{switch}/{hosts.bridge_address(n, port)}/{address}")
        host.put(f"{folder}/{address}", inside.pop(name))
        host.put(f"/sys/bus/pci/devices/{address}", {"@link": f"../../..{folder[4:]}/{address}"})
        host.drop(f"/sys/bus/pci/devices/{hosts.bridge_address(n, port)}")
    base = folder[4:] + "/" + hosts.nic_address(n)
    host.drop(f"{folder}/0000:{0x10 + 0x20 * n:02x}:01.0")
    for bus, device in ((0x10 + 0x20 * n, "01.0"), (0x11 + 0x20 * n, "00.0")):
        host.drop(f"/sys/bus/pci/devices/0000:{bus:02x}:{device}")
    for link, path in ((f"/sys/class/infiniband/mlx5_{n}", f"infiniband/mlx5_{n}"),
                       (f"/sys/class/infiniband_verbs/uverbs{n}", f"infiniband_verbs/uverbs{n}"),
                       (f"/sys/class/net/eth{n}", f"net/eth{n}")):
        host.put(link, {"@link": f"../..{base}/{path}"})
    host.put(f"/sys{base}/driver", {"@link": "../../../bus/pci/drivers/mlx5_core"})


@case()
def virtual_machine_with_its_topology(host):
    virtual_machine_without_topology(host)
    host.put("/var/run/nvidia-topologyd/virtualTopology.xml", "<system/>")
    return []


@case()
def application_faults_in_the_kernel_log(host):
    host.kernel_says("NVRM: Xid (PCI:0000:13:00): 31, pid=123, name=python, Ch 00000008",
                     "pcieport 0000:10:01.0: AER: Corrected error received: 0000:10:01.0")
    return []


@case()
def container_of_docker_with_defaults(host):
    host.drop("/dev/infiniband")
    host.verbs("list", "device mlx5_0 open device: No such file or directory",
               "device mlx5_1 open device: No such file or directory")
    drop_gids(host, 0, range(4))
    drop_gids(host, 1, range(4))
    limit_memory(host, 64 << 10)
    host.put("/proc/self/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0")
    return [("device-node-missing", FAILURE, "mlx5_0"), ("device-node-missing", FAILURE, "mlx5_1"),
            ("gid-missing", FAILURE, "mlx5_0 port 1"), ("gid-missing", FAILURE, "mlx5_1 port 1"),
            ("memlock-low", FAILURE, ""), ("shared-memory-small", WARNING, "/dev/shm")]


# --- recorded on the kernel's soft devices (scripts/vm), with `beeline doctor --record` ---

def recorded(name, *expected):
    """Registers a record. The faults were made before it was recorded, so no check of ours describes them."""
    CASES["recorded: " + name] = (lambda host: host.load(name) or list(expected), {"pairs": 0})


recorded("no-rdma", ("no-rdma-device", FAILURE, ""))
recorded("rxe-healthy")
# 128 KiB of locked memory, and the name of an interface that is not there.
recorded("rxe-ordinary-user", ("memlock-low", FAILURE, ""), ("kernel-log", UNKNOWN, ""),
         ("socket-interface-missing", FAILURE, "NCCL_SOCKET_IFNAME"))
# tc netem loss 5% while data flows.
recorded("rxe-loss", ("port-errors", WARNING, "rxe_a1 port 1"), ("port-errors", WARNING, "rxe_b1 port 1"))
recorded("rxe-mtu-and-no-address", ("mtu-differs", WARNING, "rxe_b1 port 1"),
         ("gid-only-link-local", WARNING, "rxe_b2 port 1"))
recorded("rxe-port-down", ("port-not-active", WARNING, "rxe_a1 port 1"),
         ("port-not-active", WARNING, "rxe_b1 port 1"), ("gid-only-link-local", WARNING, "rxe_b2 port 1"))
recorded("siw", ("iwarp-device", NOTE, "siw_a1"), ("iwarp-device", NOTE, "siw_b1"))
# Two NUMA nodes with a PCIe switch each. QEMU's links have one lane, and the cards have no IP address.
recorded("numa", ("numa-balancing", NOTE, ""),
         *((kind, WARNING, f"rxe_eth{n}{port}") for n in range(6)
           for kind, port in (("mtu-small", " port 1"), ("gid-only-link-local", " port 1"), ("slow-link", ""))))
