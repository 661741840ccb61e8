#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Prometheus that scrapes `beeline export` beside a ring of four ranks, with the dashboard and the alerts.

Usage: export_prometheus_test.py BEELINE SOFTNIC PLUGIN HANG_RANK
The exit status is 77 if Prometheus is not installed."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from exported import Exporter, make_sysfs
from ring import CULPRIT, RingTest, main

HERE = pathlib.Path(__file__).resolve().parent
MONITORING = HERE.parents[2] / "tools" / "export"
DASHBOARD = MONITORING / "grafana-dashboard.json"
RULES = MONITORING / "prometheus-rules.yml"
CONFIG = """
global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}
rule_files: [%s]
scrape_configs:
  - job_name: beeline
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""


def promtool(*words, **options):
    done = subprocess.run(["promtool", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=60, **options)
    return done.returncode, done.stdout


class Prometheus:
    """Scrapes one exporter, four times in a second."""

    def __init__(self, folder, target):
        config = folder / "prometheus.yml"
        config.write_text(CONFIG % (RULES, target))
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             "--web.listen-address=127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        patience = threading.Timer(30, self.process.kill)
        patience.start()
        said = ""
        for line in self.process.stderr:
            said += line
            if match := re.search(r'msg="Listening on" address=(\S+)', line):
                self.place = match[1]
                break
        else:
            raise AssertionError(said)
        patience.cancel()
        # Or it would wait once the pipe is full.
        self.reader = threading.Thread(target=self.process.stderr.read)
        self.reader.start()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def ask(self, path, **parameters):
        try:
            with urllib.request.urlopen(f"http://{self.place}/api/v1/{path}?{urllib.parse.urlencode(parameters)}",
                                        timeout=30) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it has not begun yet
                return None
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression):
        answer = self.ask("query", query=expression)
        return answer["result"] if answer else []

    def wait_for(self, expression):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if found := self.query(expression):
                return found
            time.sleep(0.1)
        raise AssertionError(f"no data within 20 s: {expression}")


def queries_of(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            # As Grafana does, with all hosts.
            yield panel["title"], target["expr"].replace("$host", ".*").replace("$__rate_interval", "4s")


class WithPrometheus(RingTest):
    def test_a_ring_with_dashboard_and_alerts(self):
        ring = self.ring()
        make_sysfs(ring.folder / "sys")
        ring.environment["BEELINE_SYSFS_ROOT"] = str(ring.folder / "sys")
        ring.wait_for_pages()
        with Exporter(ring.environment) as exporter:
            self.assertEqual(promtool("check", "metrics", input=exporter.text()), (0, ""))
            prometheus = Prometheus(ring.folder, exporter.port)
            self.addCleanup(prometheus.end)
            prometheus.wait_for("sum(rate(beeline_path_bytes_total[4s])) > 0")
            self.assertEqual([sample["value"][1] for sample in prometheus.query("up")], ["1"])
            with self.subTest("the dashboard"):
                self.check_dashboard(prometheus)
            with self.subTest("the alerts"):
                self.check_alerts(prometheus)

    def check_dashboard(self, prometheus):
        dashboard = json.loads(DASHBOARD.read_text())
        queries = list(queries_of(dashboard))
        self.assertGreater(len(queries), 20)
        for title, expression in queries:
            self.assertNotIn("$", expression, title)
            for sample in prometheus.wait_for(expression):
                self.assertNotEqual(sample["value"][1], "NaN", expression)
        self.assertEqual(len(prometheus.query("beeline_info")), 1)  # from which the list of hosts is made
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))

    def check_alerts(self, prometheus):
        groups = prometheus.ask("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        self.assertGreaterEqual(len(rules), 5)
        known = set(prometheus.ask("label/__name__/values"))
        for rule in rules:
            self.assertEqual((rule["health"], rule["state"]), ("ok", "inactive"), rule)
            # A job that goes on has no cause of a hang.
            self.assertLessEqual(set(re.findall(r"beeline_\w+", rule["query"])), known | {"beeline_hang_cause_seconds"})

    def test_the_alert_for_a_rank_that_is_killed_names_it(self):
        for survivors_stay in True, False:
            with self.subTest(survivors_stay=survivors_stay):
                ring = self.ring(BEELINE_JOB="48213.0", **({"CATCHES_ERRORS": "1"} if survivors_stay else {}))
                ring.wait_for_pages()
                with Exporter(ring.environment) as exporter:
                    prometheus = Prometheus(ring.folder, exporter.port)
                    self.addCleanup(prometheus.end)
                    prometheus.wait_for("beeline_processes{state='running'} == 4")
                    self.assertEqual(prometheus.query("ALERTS"), [])
                    ring.ranks[CULPRIT].kill()
                    prometheus.wait_for('ALERTS{alertname="BeelineRankEnded", alertstate="firing"}')
                    alerts = [sample["metric"] for sample in prometheus.query('ALERTS{alertstate="firing"}')]
                    self.assertEqual([(one["alertname"], one["nccl_job"], one["rank"]) for one in alerts],
                                     [("BeelineRankEnded", "48213.0", str(CULPRIT))], alerts)

    def test_when_alerts_fire(self):
        status, text = promtool("check", "rules", str(RULES))
        self.assertEqual(status, 0, text)
        status, text = promtool("test", "rules", "export_rules_test.yml", cwd=HERE)
        self.assertEqual(status, 0, text)


if __name__ == "__main__":
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("skipped: Prometheus is not installed (Debian has it in prometheus)")
        sys.exit(77)
    main()
