# SPDX-License-Identifier: Apache-2.0
"""`beeline export` while it runs, and what it exports, for tests."""

import collections
import pathlib
import re
import subprocess
import threading
import urllib.request

from ring import BEELINE

Sample = collections.namedtuple("Sample", "name labels value")
Metrics = collections.namedtuple("Metrics", "types samples")
LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_]+)\{{({LABEL}(?:,{LABEL})*)\}} (\S+)")

# The counters of mlx5: one for each metric.
COUNTERS = {
    "counters": ["port_xmit_data", "port_rcv_data", "port_xmit_wait", "port_xmit_discards", "port_rcv_errors",
                 "symbol_error", "link_error_recovery", "link_downed"],
    "hw_counters": ["roce_adp_retrans", "packet_seq_err", "out_of_sequence", "duplicate_request",
                    "local_ack_timeout_err", "req_transport_retries_exceeded", "rnr_nak_retry_err", "out_of_buffer",
                    "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored",
                    "req_remote_access_errors", "req_cqe_error", "rx_icrc_encapsulated"],
}


def make_sysfs(folder):
    """A tree like /sys with the port that all ranks of the ring have. Each counter has another value."""
    port = pathlib.Path(folder) / "class/infiniband/softnic0/ports/1"
    values = {}
    for group, names in COUNTERS.items():
        (port / group).mkdir(parents=True)
        for name in names:
            values[name] = 1000 + len(values)
            (port / group / name).write_text(f"{values[name]}\n")
    (port / "state").write_text("4: ACTIVE\n")
    (port / "rate").write_text("100 Gb/sec (4X EDR)\n")
    return values


def parse(text):
    """The metrics of a text in Prometheus's format 0.0.4; an AssertionError if it is not one."""
    types, samples, family = {}, [], None
    assert text.endswith("\n"), text[-100:]
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in types and len(line.split()) > 3, line
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == family and family in types, line
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2]))
            samples.append(Sample(match[1], labels, float(match[3])))
    keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(keys) == len(set(keys)), "a sample is there twice"
    return Metrics(types, samples)


def total(metrics, name, **labels):
    """The sum over the samples of this name with these labels, of which there has to be one."""
    values = [sample.value for sample in metrics.samples
              if sample.name == name and labels.items() <= sample.labels.items()]
    assert values, f"no sample {name}{labels}"
    return sum(values)


class Exporter:
    """`beeline export --http 0`. It ends with the `with` block."""

    def __init__(self, environment, *options):
        self.process = subprocess.Popen([BEELINE, "export", "--http", "0", *options], env=environment,
                                        stdout=subprocess.PIPE, text=True)
        patience = threading.Timer(30, self.process.kill)
        patience.start()
        self.url = self.process.stdout.readline().strip()
        patience.cancel()
        if not self.url:
            self.process.stdout.close()
            raise AssertionError(f"beeline export has not begun: exit status {self.process.wait()}")
        self.port = int(self.url.rpartition(":")[2].partition("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.status = self.process.wait(timeout=30)
        self.process.stdout.close()

    def text(self):
        with urllib.request.urlopen(self.url, timeout=30) as reply:
            return reply.read().decode()

    def scrape(self):
        return parse(self.text())
