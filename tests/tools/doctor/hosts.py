# SPDX-License-Identifier: Apache-2.0
"""Records of hosts, as `beeline doctor --record` writes them: healthy ones, which tests then change."""

import json
import pathlib

RECORDS = pathlib.Path(__file__).resolve().parent / "records"

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            1048576              1048576              files
Max locked memory         {memlock:<20} {memlock:<20} bytes
"""
BAR_OF_A_GPU = 80 << 30


def capability(control):
    """The configuration space of a bridge whose only extended capability is access control."""
    config = bytearray(0x110)
    config[0x100:0x104] = (0x0001000D).to_bytes(4, "little")
    config[0x106:0x108] = control.to_bytes(2, "little")
    return {"@hex": config.hex()}


class Host:
    """A record, and shorter names for its parts."""

    def __init__(self, tree):
        self.tree = tree

    def at(self, path):
        """The folder of the path, following links in the record, and the last name."""
        folders, names = [self.tree], path.strip("/").split("/")
        while len(names) > 1:
            name = names.pop(0)
            if name == "..":
                folders.pop()
                continue
            entry = folders[-1].setdefault(name, {})
            if "@link" in entry:
                names[:0] = entry["@link"].split("/")
            else:
                folders.append(entry)
        return folders[-1], names[0]

    def put(self, path, value):
        folder, name = self.at(path)
        folder[name] = value if isinstance(value, dict) else f"{value}\n"

    def drop(self, path):
        folder, name = self.at(path)
        folder.pop(name)

    def refuse(self, path):
        self.put(path, {"@error": "EACCES"})

    def port(self, nic, name, value):
        self.put(f"/sys/class/infiniband/mlx5_{nic}/ports/1/{name}", value)

    def function(self, address, name, value):
        self.put(f"/sys/bus/pci/devices/{address}/{name}", value)

    def environment(self, *lines):
        self.tree["environment"] += "".join(line + "\n" for line in lines)

    def verbs(self, *lines):
        self.tree["verbs"] = "".join(line + "\n" for line in lines)

    def kernel_says(self, *messages):
        self.tree["dev"]["kmsg"] = "".join(f"6,{100 + n},5000,-;{text}\n" for n, text in enumerate(messages))

    def load(self, name):
        """Takes a record of this folder."""
        self.tree = json.loads((RECORDS / f"{name}.json").read_text())

    def text(self):
        return json.dumps(self.tree)


def gpu_address(n):
    return f"0000:{0x13 + 0x20 * n:02x}:00.0"


def nic_address(n):
    return f"0000:{0x14 + 0x20 * n:02x}:00.0"


def bridge_address(n, port):
    """The ports of the switch above GPU n and NIC n: 0 to the GPU, 1 to the NIC."""
    return f"0000:{0x12 + 0x20 * n:02x}:{port:02x}.0"


class Builder:
    def __init__(self):
        self.host = Host({"environment": "NCCL_NET_PLUGIN=beeline\n", "verbs": "list\n"})
        self.interfaces = []  # of RDMA devices, each with its subnet
        self.domains = 0

    def function(self, parents, address, values):
        path = "/".join(["/sys/devices", *parents, address])
        self.host.put(f"/sys/bus/pci/devices/{address}", {"@link": f"../../..{path[4:]}"})
        for name, value in values.items():
            self.host.put(f"{path}/{name}", value)
        return path

    def link(self, numa, now="32.0 GT/s PCIe"):
        return {"numa_node": numa, "local_cpulist": f"{32 * numa}-{32 * numa + 31}",
                "current_link_speed": now, "max_link_speed": "32.0 GT/s PCIe",
                "current_link_width": 16, "max_link_width": 16}

    def bridge(self, parents, address, numa):
        self.function(parents, address, {**self.link(numa), "class": "0x060400", "vendor": "0x1000",
                                         "device": "0xc030", "config": capability(0x0001)})

    # Places: each returns the functions above a device, and its address. Each has a PCI domain of its own.

    def root_bus(self, _numa=0):
        self.domains += 1
        return [f"pci{self.domains:04x}:00"], f"{self.domains:04x}:00:02.0"

    def root_port(self, numa=0):
        parents, _ = self.root_bus()
        self.bridge(parents, f"{self.domains:04x}:00:01.0", numa)
        return [*parents, f"{self.domains:04x}:00:01.0"], f"{self.domains:04x}:01:00.0"

    def switch(self, numa, ports):
        parents, upstream = self.root_port(numa)
        domain = upstream[:4]
        self.bridge(parents, upstream, numa)
        for port in range(ports):
            self.bridge([*parents, upstream], f"{domain}:02:{port:02x}.0", numa)
        return [([*parents, upstream, f"{domain}:02:{port:02x}.0"], f"{domain}:{0x10 + port:02x}:00.0")
                for port in range(ports)]

    def gpu(self, place, numa, ids=("0x10de", "0x2330"), kind="0x030200", now="32.0 GT/s PCIe", iommu="identity"):
        self.function(*place, {
            **self.link(numa, now), "class": kind, "vendor": ids[0], "device": ids[1], "iommu_group/type": iommu,
            "resource": "0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n"
                        f"0x0000380000000000 {0x380000000000 + BAR_OF_A_GPU - 1:#018x} 0x000000000014220c"})

    def nic(self, place, numa, name, layer, interface="", ids=("0x15b3", "0x1021"), driver="mlx5_core",
            iommu="identity", **rdma):
        parents, address = place
        nic = self.function(parents, address, {
            **self.link(numa), "class": "0x020700" if layer == "InfiniBand" else "0x020000", "vendor": ids[0],
            "device": ids[1], "iommu_group/type": iommu})
        self.host.put(f"{nic}/driver", {"@link": f"{'../' * (len(parents) + 3)}bus/pci/drivers/{driver}"})
        self.rdma(nic, name, layer, interface, **rdma)

    def rdma(self, nic, name, layer, interface, model="MT4129", board="", firmware="28.39.1002",
             rate="400 Gb/sec (4X NDR)", mtu=9000, addresses=None):
        """`addresses`: the GIDs of the port, as (address, type)."""
        device, n = f"{nic}/infiniband/{name}", self.host.tree["verbs"].count("device ")
        self.host.put(f"/sys/class/infiniband/{name}", {"@link": f"../..{nic[4:]}/infiniband/{name}"})
        self.host.put(f"{device}/device", {"@link": "../../../" + nic.rsplit("/", 1)[1]})
        for path, value in {"node_type": "1: CA", "hca_type": model, "fw_ver": firmware,
                            "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
                            "ports/1/rate": rate, "ports/1/link_layer": layer,
                            "ports/1/counters/link_downed": 0, "ports/1/counters/symbol_error": 0,
                            "ports/1/hw_counters/packet_seq_err": 7}.items():
            self.host.put(f"{device}/{path}", value)
        if board:
            self.host.put(f"{device}/board_id", board)
        self.host.put(f"/later/sys/class/infiniband/{name}/ports/1/counters/symbol_error", 0)
        self.host.put(f"/later/sys/class/infiniband/{name}/ports/1/hw_counters/packet_seq_err", 7)
        self.host.put(f"{nic}/infiniband_verbs/uverbs{n}/ibdev", name)
        self.host.put(f"/sys/class/infiniband_verbs/uverbs{n}",
                      {"@link": f"../..{nic[4:]}/infiniband_verbs/uverbs{n}"})
        self.host.put(f"/dev/infiniband/uverbs{n}", "")
        self.host.tree["verbs"] += f"device {name}\nmtu {name} 1 4096\n"
        local = f"fe80:0000:0000:0000:0000:00ff:fe00:{n:04x}"
        if layer == "InfiniBand":
            self.gid(device, 0, local, "IB/RoCE v1", "")
            return
        mapped = f"0000:0000:0000:0000:0000:ffff:0a00:{n:02x}05"
        self.interfaces.append((interface, n))
        self.host.put(f"/sys/class/net/{interface}", {"@link": f"../..{nic[4:]}/net/{interface}"})
        for file, value in {"address": f"02:00:00:00:00:{n:02x}", "mtu": mtu, "dev_port": 0}.items():
            self.host.put(f"{nic}/net/{interface}/{file}", value)
        for index, (address, on) in enumerate(addresses(n) if addresses else ((local, ""), (mapped, ""))):
            for version, kind in enumerate(("IB/RoCE v1", "RoCE v2")):
                self.gid(device, 2 * index + version, address, kind, interface + on)

    def gid(self, device, index, address, kind, interface):
        self.host.put(f"{device}/ports/1/gids/{index}", address)
        self.host.put(f"{device}/ports/1/gid_attrs/types/{index}", kind)
        if interface:
            self.host.put(f"{device}/ports/1/gid_attrs/ndevs/{index}", interface)

    def pair(self, n, is_infiniband):
        """A switch with GPU n and NIC n below it."""
        numa, bus = n % 2, 0x10 + 0x20 * n
        parents = [f"pci0000:{bus:02x}", f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0"]
        self.bridge(parents[:1], parents[1], numa)
        self.bridge(parents[:2], parents[2], numa)
        for port in range(2):
            self.bridge(parents, bridge_address(n, port), numa)
        self.gpu(([*parents, bridge_address(n, 0)], gpu_address(n)), numa)
        self.nic(([*parents, bridge_address(n, 1)], nic_address(n)), numa, f"mlx5_{n}",
                 "InfiniBand" if is_infiniband else "Ethernet", f"eth{n}")

    def rest(self, nodes=2, sockets=2):
        put = self.host.put
        names = ["lo", "eno1", *(name for name, _ in self.interfaces)]
        put("/proc/net/dev", "Inter-|\n face |\n" + "\n".join(f"  {name}: 1 1" for name in names))
        routes = [f"{name}\t00{n:02X}000A\t00000000\t0001\t0\t0\t0\t00FFFFFF" for name, n in self.interfaces]
        put("/proc/net/route", "\n".join(["Iface\tDestination\tGateway", *routes]))
        for interface in ("all", *names):
            for name in ("arp_ignore", "arp_announce", "rp_filter"):
                put(f"/proc/sys/net/ipv4/conf/{interface}/{name}", 0)
        put("/proc/self/limits", LIMITS.format(memlock="unlimited"))
        put("/proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-" + str(32 * nodes - 1))
        put("/proc/self/cgroup", "0::/system.slice/slurmd.service")
        put("/proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0")
        put("/proc/sys/kernel/osrelease", "6.8.0-45-generic")
        put("/proc/sys/kernel/numa_balancing", 0)
        put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme lm sse2 avx512f")
        put("/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build")
        put("/sys/devices/system/cpu/online", f"0-{32 * nodes - 1}")
        put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
        for node in range(nodes):
            put(f"/sys/devices/system/node/node{node}/cpulist", f"{32 * node}-{32 * node + 31}")
            for cpu in (32 * node, 32 * node + 31):
                put(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", node * sockets // nodes)
        put("/sys/module/nvidia_peermem/version", "550.54.15")
        put("/dev/kmsg", "6,1,0,-;mlx5_core 0000:14:00.0: firmware version: 28.39.1002")


def healthy(pairs=2, is_infiniband=False):
    builder = Builder()
    for n in range(pairs):
        builder.pair(n, is_infiniband)
    builder.rest()
    return builder.host


# Machines that people have, and nothing is wrong with. Each function adds the GPUs and the NICs.

IPV6 = "2001:0db8:0000:{n:04x}:0000:0000:0000:0005"
HDR, NDR200, BOARD, STORAGE_BOARD = "200 Gb/sec (4X HDR)", "200 Gb/sec (2X NDR)", "MT_0000000838", "MT_0000000891"
IN_BAND = {"interface": "ens0f0", "ids": ("0x15b3", "0x101d"), "model": "MT4125", "rate": "100 Gb/sec (2X HDR)", "mtu": 1500}


def sockets(n, of):
    return 2 * n // of


def rails(builder, gpus=8, nics=8, layer="InfiniBand", gpu=(), **nic):
    """A switch for each NIC, with its share of the GPUs below."""
    for n in range(nics):
        numa, share = sockets(n, nics), gpus // nics
        *places, last = builder.switch(numa, share + 1)
        for place in places:
            builder.gpu(place, numa, **dict(gpu))
        builder.nic(last, numa, f"mlx5_{n}", layer, f"eth{n}", **{"board": BOARD, **nic})


def dgx_h100(builder, board=STORAGE_BOARD, gpu=()):
    """Its storage cards have the same chip as the rails, and half of their speed."""
    rails(builder, gpu=gpu, board=board and BOARD)
    for n in (8, 9):
        builder.nic(builder.root_port(n - 8), n - 8, f"mlx5_{n}", "InfiniBand", board=board, rate=NDR200)


def with_in_band(builder, **options):
    rails(builder, **options)
    builder.nic(builder.root_port(1), 1, "mlx5_8", "Ethernet", board="MT_0000000359", **IN_BAND)


def mi300x(builder):
    for n in range(8):
        of_gpu, of_nic = builder.switch(sockets(n, 8), 2)
        builder.gpu(of_gpu, sockets(n, 8), ("0x1002", "0x74a1"), "0x120000")
        builder.nic(of_nic, sockets(n, 8), f"bnxt_re{n}", "Ethernet", f"ens{n}", ("0x14e4", "0x1760"), "bnxt_en",
                    model="BCM57608", firmware="231.2.63.0")


def grace(builder):
    for n in range(4):
        builder.gpu(builder.root_port(n // 2), n // 2, ("0x10de", "0x2941"), iommu="DMA-FQ")
        builder.nic(builder.root_port(n // 2), n // 2, f"mlx5_{n}", "InfiniBand", iommu="DMA-FQ")


def workstation(builder):
    for _ in range(2):
        builder.gpu(builder.root_port(), 0, ("0x10de", "0x26b1"))
    builder.nic(builder.root_port(), 0, "mlx5_0", "Ethernet", "enp1s0", ("0x15b3", "0x101d"), model="MT4125",
                rate="100 Gb/sec (4X EDR)")


def workstation_with_spare(builder):
    """Another card, which no cable is in."""
    workstation(builder)
    builder.nic(builder.root_port(), 0, "mlx5_1", "Ethernet", "enp2s0", ("0x15b3", "0x1015"), model="MT4117")


def azure(builder):
    """A virtual machine without a tree, whose network interface is an RDMA device as well."""
    for n in range(8):
        builder.gpu(builder.root_bus(), sockets(n, 8))
        builder.nic(builder.root_bus(), sockets(n, 8), f"mlx5_ib{n}", "InfiniBand", ids=("0x15b3", "0x101e"), model="MT4126")
    builder.nic(builder.root_bus(), 0, "mlx5_an0", "Ethernet", "enP1s1", ("0x15b3", "0x1016"), model="MT4118",
                rate="40 Gb/sec (4X QDR)", mtu=1500)


def oci(builder):
    """Two ports of 200 Gb/s for each GPU, and two cards for the host."""
    for n in range(8):
        numa = sockets(n, 8)
        of_gpu, (above, address) = builder.switch(numa, 2)
        builder.gpu(of_gpu, numa)
        for port in range(2):
            builder.nic((above, f"{address[:-1]}{port}"), numa, f"mlx5_{2 * n + port}", "Ethernet", f"rdma{2 * n + port}",
                        board=BOARD, rate=HDR, mtu=4220)
    for n in (16, 17):
        builder.nic(builder.root_port(n - 16), n - 16, f"mlx5_{n}", "Ethernet", f"eth{n - 16}", board=STORAGE_BOARD,
                    rate="100 Gb/sec (4X EDR)")


def one_for_all(builder, gpus=8):
    """All GPUs below two switches, and one NIC."""
    for numa in range(2):
        for place in builder.switch(numa, gpus // 2):
            builder.gpu(place, numa, ("0x10de", "0x26b9"))
    builder.nic(builder.root_port(1), 1, "mlx5_0", "InfiniBand")


def machine(build, nodes=2, sockets_of=2, **options):
    builder = Builder()
    build(builder, **options)
    builder.rest(nodes, sockets_of)
    return builder.host
