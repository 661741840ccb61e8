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

    def function(self, parents, address, values):
        path = "/".join(["/sys/devices", *parents, address])
        self.host.put(f"/sys/bus/pci/devices/{address}", {"@link": f"../../..{path[4:]}"})
        for name, value in values.items():
            self.host.put(f"{path}/{name}", value)
        return path

    def link(self, numa):
        return {"numa_node": numa, "local_cpulist": f"{32 * numa}-{32 * numa + 31}",
                "current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe",
                "current_link_width": 16, "max_link_width": 16}

    def bridge(self, parents, address, numa):
        self.function(parents, address, {**self.link(numa), "class": "0x060400", "vendor": "0x1000",
                                         "device": "0xc030", "config": capability(0x0001)})

    def pair(self, n, is_infiniband):
        """A switch with GPU n and NIC n below it."""
        numa, bus = n % 2, 0x10 + 0x20 * n
        parents = [f"pci0000:{bus:02x}", f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0"]
        self.bridge(parents[:1], parents[1], numa)
        self.bridge(parents[:2], parents[2], numa)
        for port in range(2):
            self.bridge(parents, bridge_address(n, port), numa)
        self.function([*parents, bridge_address(n, 0)], gpu_address(n), {
            **self.link(numa), "class": "0x030200", "vendor": "0x10de", "device": "0x2330",
            "iommu_group/type": "identity",
            "resource": "0x0000000090000000 0x0000000090ffffff 0x0000000000040200\n"
                        f"0x0000380000000000 {0x380000000000 + BAR_OF_A_GPU - 1:#018x} 0x000000000014220c"})
        nic = self.function([*parents, bridge_address(n, 1)], nic_address(n), {
            **self.link(numa), "class": "0x020700" if is_infiniband else "0x020000", "vendor": "0x15b3",
            "device": "0x1021", "iommu_group/type": "identity"})
        self.host.put(f"{nic}/driver", {"@link": "../../../../../../bus/pci/drivers/mlx5_core"})
        self.rdma(nic, n, is_infiniband)

    def rdma(self, nic, n, is_infiniband):
        name = f"mlx5_{n}"
        device = f"{nic}/infiniband/{name}"
        self.host.put(f"/sys/class/infiniband/{name}", {"@link": f"../..{nic[4:]}/infiniband/{name}"})
        self.host.put(f"{device}/device", {"@link": "../../../" + nic_address(n)})
        for path, value in {"node_type": "1: CA", "hca_type": "MT4129", "fw_ver": "28.39.1002",
                            "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
                            "ports/1/rate": "400 Gb/sec (4X NDR)",
                            "ports/1/link_layer": "InfiniBand" if is_infiniband else "Ethernet",
                            "ports/1/counters/link_downed": 0, "ports/1/counters/symbol_error": 0,
                            "ports/1/hw_counters/packet_seq_err": 7}.items():
            self.host.put(f"{device}/{path}", value)
        self.host.put(f"/later/sys/class/infiniband/{name}/ports/1/counters/symbol_error", 0)
        self.host.put(f"/later/sys/class/infiniband/{name}/ports/1/hw_counters/packet_seq_err", 7)
        self.host.put(f"{nic}/infiniband_verbs/uverbs{n}/ibdev", name)
        self.host.put(f"/sys/class/infiniband_verbs/uverbs{n}",
                      {"@link": f"../..{nic[4:]}/infiniband_verbs/uverbs{n}"})
        self.host.put(f"/dev/infiniband/uverbs{n}", "")
        self.host.tree["verbs"] += f"device {name}\nmtu {name} 1 4096\n"
        if is_infiniband:
            self.gid(n, 0, f"fe80:0000:0000:0000:9403:98ff:fe00:{n:04x}", "IB/RoCE v1", "")
            return
        interface = f"eth{n}"
        self.host.put(f"/sys/class/net/{interface}", {"@link": f"../..{nic[4:]}/net/{interface}"})
        for file, value in {"address": f"02:00:00:00:00:{n:02x}", "mtu": 9000, "dev_port": 0}.items():
            self.host.put(f"{nic}/net/{interface}/{file}", value)
        self.gid(n, 0, f"fe80:0000:0000:0000:0000:00ff:fe00:{n:04x}", "IB/RoCE v1", interface)
        self.gid(n, 1, f"fe80:0000:0000:0000:0000:00ff:fe00:{n:04x}", "RoCE v2", interface)
        self.gid(n, 2, f"0000:0000:0000:0000:0000:ffff:0a00:{n:02x}05", "IB/RoCE v1", interface)
        self.gid(n, 3, f"0000:0000:0000:0000:0000:ffff:0a00:{n:02x}05", "RoCE v2", interface)

    def gid(self, n, index, address, kind, interface):
        self.host.port(n, f"gids/{index}", address)
        self.host.port(n, f"gid_attrs/types/{index}", kind)
        if interface:
            self.host.port(n, f"gid_attrs/ndevs/{index}", interface)

    def rest(self, pairs, is_infiniband):
        put = self.host.put
        names = ["lo", "eno1"] + ([] if is_infiniband else [f"eth{n}" for n in range(pairs)])
        put("/proc/net/dev", "Inter-|\n face |\n" + "\n".join(f"  {name}: 1 1" for name in names))
        routes = [f"eth{n}\t00{n:02X}000A\t00000000\t0001\t0\t0\t0\t00FFFFFF" for n in range(pairs)]
        put("/proc/net/route", "\n".join(["Iface\tDestination\tGateway", *([] if is_infiniband else routes)]))
        for interface in ("all", *names):
            for name in ("arp_ignore", "arp_announce", "rp_filter"):
                put(f"/proc/sys/net/ipv4/conf/{interface}/{name}", 0)
        put("/proc/self/limits", LIMITS.format(memlock="unlimited"))
        put("/proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-63")
        put("/proc/self/cgroup", "0::/system.slice/slurmd.service")
        put("/proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0")
        put("/proc/sys/kernel/osrelease", "6.8.0-45-generic")
        put("/proc/sys/kernel/numa_balancing", 0)
        put("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme lm sse2 avx512f")
        put("/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build")
        put("/sys/devices/system/cpu/online", "0-63")
        put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
        for node in range(2):
            put(f"/sys/devices/system/node/node{node}/cpulist", f"{32 * node}-{32 * node + 31}")
            for cpu in (32 * node, 32 * node + 31):
                put(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", node)
        put("/sys/module/nvidia_peermem/version", "550.54.15")
        put("/dev/kmsg", "6,1,0,-;mlx5_core 0000:14:00.0: firmware version: 28.39.1002")


def healthy(pairs=2, is_infiniband=False):
    builder = Builder()
    for n in range(pairs):
        builder.pair(n, is_infiniband)
    builder.rest(pairs, is_infiniband)
    return builder.host
