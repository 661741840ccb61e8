#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubectl understands docs/deploy/kubernetes-pod.yaml, all of it, and the pod has the variables of the job scripts.

It needs no cluster: `--local` decodes the file. The exit status is 77 if kubectl is not installed."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / "docs" / "deploy"
POD = DEPLOY / "kubernetes-pod.yaml"
# What a container needs, by docs/containers.md.
NEEDS = {"/dev/shm", "/opt/beeline", "IPC_LOCK", "rdma/hca"}


def kubectl(*words):
    with tempfile.TemporaryDirectory() as home:  # where it would look for a cluster, and keep what it has learnt
        return subprocess.run(["kubectl", *words, "--local", "-o", "json"], capture_output=True, text=True, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": home}, timeout=60)


def as_written(file):
    return json.loads(kubectl("annotate", "-f", file, "a=b").stdout)["spec"]


def as_understood(file):
    """As a pod of kubectl's version of the API, from which fields that no pod has are missing."""
    done = kubectl("set", "env", "-f", file, "ADDED=1")
    if done.returncode != 0:
        raise ValueError(done.stderr)
    spec = json.loads(done.stdout)["spec"]
    for container in spec["containers"]:
        container["env"].remove({"name": "ADDED", "value": "1"})
    return spec


def quantities_as_text(value):
    if isinstance(value, dict):
        return {name: quantities_as_text(one) for name, one in value.items()}
    if isinstance(value, list):
        return [quantities_as_text(one) for one in value]
    return value if isinstance(value, bool) else str(value)


class Pod(unittest.TestCase):
    def changed(self, old, new):
        text = POD.read_text()
        self.assertIn(old, text)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name) / "pod.yaml"
        file.write_text(text.replace(old, new))
        return file

    def test_every_field_is_one_of_a_pod(self):
        self.assertEqual(quantities_as_text(as_understood(POD)), quantities_as_text(as_written(POD)))

    def test_mistakes_are_found(self):
        misspelled = self.changed("securityContext", "securtyContext")
        self.assertNotEqual(quantities_as_text(as_understood(misspelled)), quantities_as_text(as_written(misspelled)))
        with self.assertRaisesRegex(ValueError, "unable to decode"):
            as_understood(self.changed('value: "1"', "value: 1"))

    def test_it_has_what_the_page_asks_for(self):
        container, = as_written(POD)["containers"]
        found = {mount["mountPath"] for mount in container["volumeMounts"]}
        found.update(container["securityContext"]["capabilities"]["add"], container["resources"]["limits"])
        self.assertLessEqual(NEEDS, found)

    def test_variables_are_those_of_the_scripts(self):
        container, = as_written(POD)["containers"]
        variables = {(one["name"], one["value"]) for one in container["env"]}
        self.assertNotIn("LD_LIBRARY_PATH", dict(variables))  # it would replace that of the image
        variables.remove(("NCCL_NET_PLUGIN", "/opt/beeline/lib/libnccl-net-beeline.so"))
        variables.add(("NCCL_NET_PLUGIN", "beeline"))
        for script in set(DEPLOY.glob("*.sh")) - {DEPLOY / "task-prolog.sh"}:
            text = script.read_text()
            self.assertEqual(set(re.findall(r"(NCCL_\w+)=(\w+)", text)), variables, script)
            self.assertIn("LD_LIBRARY_PATH=${PLUGIN_DIR:-/opt/beeline/lib}", text, script)


if __name__ == "__main__":
    if not shutil.which("kubectl"):
        print("skipped: kubectl is not installed (Debian has it in kubernetes-client)")
        sys.exit(77)
    unittest.main()
