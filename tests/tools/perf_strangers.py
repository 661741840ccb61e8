#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connects to rank 0 of `beeline perf` without being one of its ranks.

Usage: perf_strangers.py RENDEZVOUS_FILE crowd|drip

crowd: says what a stranger may say, checks that it is turned away, and stays until it is killed.
drip: sends a byte now and then, until rank 0 is gone.
"""

import json
import os
import pathlib
import socket
import stat
import struct
import sys
import time

HELLO = 1
PATIENCE = 30  # seconds; bounds a hang


def frame(kind, body):
    return struct.pack("<IB", len(body), kind) + body


def hello(**words):
    return frame(HELLO, json.dumps(words).encode())


WORDS = {
    "a web browser": b"GET / HTTP/1.0\r\n\r\n",
    "4 GiB announced": struct.pack("<IB", 0xFFFFFFFF, HELLO),
    "1 MiB announced": struct.pack("<IB", 1 << 20, HELLO),
    "malformed JSON": frame(HELLO, b'{"rank": '),
    "JSON in JSON": frame(HELLO, b'{"rank": 1, "terms": ' + b"[" * 30000 + b"]" * 30000 + b"}"),
    "JSON of another shape": frame(HELLO, b'["rank"]'),
    "JSON of other types": hello(rank="one", token=7, terms=None),
    "another frame": frame(2, b"{}"),
    "an unknown frame": frame(200, b""),
    "no token": hello(rank=1, terms={}),
    "a wrong token": hello(rank=1, terms={}, token="0" * 32),
}


def address_in(file):
    """Waits for the file; readers see the whole address or none."""
    end = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > end:
            sys.exit("rank 0 left no address")
        time.sleep(0.01)
    mode = stat.S_IMODE(os.stat(file).st_mode)
    if mode != 0o600:
        sys.exit(f"others may read the token: mode {mode:o}")
    host, port = file.read_text(encoding="utf-8").split()[0].rsplit(":", 1)
    return host, int(port)


def crowd(address):
    silent = [socket.create_connection(address) for _ in range(3)]
    for _ in range(20):
        socket.create_connection(address).close()
    for name, words in WORDS.items():
        with socket.create_connection(address, PATIENCE) as line:
            line.sendall(words)
            try:
                answer = line.recv(1)
            except ConnectionResetError:
                answer = b""
            except TimeoutError:
                sys.exit(f"{name}: not turned away")
            if answer:
                sys.exit(f"{name}: answered")
    print("turned away", flush=True)
    time.sleep(10 * PATIENCE)
    return silent


def drip(address):
    with socket.create_connection(address) as line:
        try:
            for byte in hello(rank=1, terms={}, token="x" * 10000):
                line.sendall(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            return


if __name__ == "__main__":
    {"crowd": crowd, "drip": drip}[sys.argv[2]](address_in(pathlib.Path(sys.argv[1])))
