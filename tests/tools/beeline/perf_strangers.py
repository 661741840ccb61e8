#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connects to rank 0 of `beeline COMMAND` without being one of its ranks. It also has what ranks say to rank 0 before
they are admitted, for tests that know the token.

Usage: perf_strangers.py RENDEZVOUS_FILE crowd|drip [COMMAND]

crowd: says what a stranger may say, checks that it is turned away, and stays until it is killed.
drip: sends a byte now and then, until rank 0 is gone.
"""

import hmac
import os
import pathlib
import socket
import stat
import sys
import time

RANK_0, OTHER_RANK = b"beeline: rank 0", b"beeline: other rank"
DIGITS = 64  # of a challenge, and of a proof
ZEROS = "0" * DIGITS
PATIENCE = 30  # seconds; bounds a hang


def proof(end, token, of_rank_0, of_other_rank, command="perf", address="", said=""):
    """`address` is HOST:PORT, or empty if the ranks meet by a file; `said` is the hello of the other rank."""
    parts = end, command.encode(), address.encode(), of_rank_0.encode(), of_other_rank.encode(), said.encode()
    text = b"".join(b"%d:%s" % (len(part), part) for part in parts)
    return hmac.new(token.encode(), text, "sha512").hexdigest()[:DIGITS]


def send(line, text):
    line.sendall(text.encode() + b"\n")


def received(line):
    """A line of text; None if the connection has ended."""
    text = b""
    while not text.endswith(b"\n"):
        part = line.recv(1)
        if not part:
            return None
        text += part
    return text[:-1].decode()


ABOUT = '1 {"a": "b"}'
WORDS = {
    "a web browser": b"GET / HTTP/1.0\r\n\r\n",
    "a line without an end": b"x" * 70_000,
    "an empty line": b"\n",
    "no text": b"\0\xff\n",
    "no challenge": ABOUT.encode() + b"\n",
    "a proof before a challenge": (ZEROS + ABOUT).encode() + b"\n",
    "a short challenge": b"0\n",
    "a long challenge": ZEROS.encode() + b"0\n",
}
# What a stranger sends after rank 0's challenge and proof.
PROOFS = {
    "no proof": lambda prove, proof_of_rank_0: "",
    "a wrong proof": lambda prove, proof_of_rank_0: ZEROS,
    "rank 0's own proof": lambda prove, proof_of_rank_0: proof_of_rank_0,
    "the proof with a token that is empty": lambda prove, proof_of_rank_0: prove(token=""),
    "the proof of another command": lambda prove, proof_of_rank_0: prove(command="soak"),
    "the proof at another address": lambda prove, proof_of_rank_0: prove(address="127.0.0.1:1"),
    "the proof of another hello": lambda prove, proof_of_rank_0: prove(said=ABOUT.replace("1", "2")),
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
    where, token = file.read_text(encoding="utf-8").split()
    host, port = where.rsplit(":", 1)
    return (host, int(port)), token


def expect_end(name, line):
    """Rank 0 closes the connection and says nothing more."""
    try:
        answer = line.recv(1)
    except ConnectionResetError:
        answer = b""
    except TimeoutError:
        sys.exit(f"{name}: not turned away")
    if answer:
        sys.exit(f"{name}: answered")


def crowd(address, token, command):
    silent = [socket.create_connection(address) for _ in range(3)]
    for _ in range(20):
        socket.create_connection(address).close()
    for name, words in WORDS.items():
        with socket.create_connection(address, PATIENCE) as line:
            line.sendall(words)
            expect_end(name, line)
    for name, answer in PROOFS.items():
        with socket.create_connection(address, PATIENCE) as line:
            send(line, ZEROS)
            answer_of_rank_0 = received(line)
            of_rank_0, proof_of_rank_0 = answer_of_rank_0[:DIGITS], answer_of_rank_0[DIGITS:]
            if proof_of_rank_0 != proof(RANK_0, token, of_rank_0, ZEROS, command):
                sys.exit(f"{name}: rank 0 does not prove that it knows the token")
            right = {"end": OTHER_RANK, "token": token, "of_rank_0": of_rank_0, "of_other_rank": ZEROS,
                     "command": command, "said": ABOUT}
            prove = lambda **changes: proof(**{**right, **changes})
            send(line, answer(prove, proof_of_rank_0) + ABOUT)
            expect_end(name, line)
    print("turned away", flush=True)
    time.sleep(10 * PATIENCE)
    return silent


def drip(address, *_):
    with socket.create_connection(address) as line:
        try:
            for _ in range(10000):
                line.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            return


if __name__ == "__main__":
    {"crowd": crowd, "drip": drip}[sys.argv[2]](*address_in(pathlib.Path(sys.argv[1])), *(sys.argv[3:] or ["perf"]))
