#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the UDP source ports of the RoCE packets that a network card sends.

Usage: udp_ports.py CARD COUNT SECONDS

Prints `ready`, and ends when COUNT ports have been seen or after SECONDS.
"""

import socket
import struct
import sys
import time

ETH_P_ALL = 3  # a tap for one protocol sees no packets that are sent
PACKET_OUTGOING = 4
ROCE_V2 = 4791


def main():
    card, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    tap.bind((card, ETH_P_ALL))
    tap.settimeout(0.1)
    print("ready", flush=True)
    ports = set()
    end = time.monotonic() + seconds
    while len(ports) < count and time.monotonic() < end:
        try:
            packet, (_, _, kind, _, _) = tap.recvfrom(64)
        except TimeoutError:
            continue
        is_udp = packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_UDP
        if kind != PACKET_OUTGOING or not is_udp:
            continue
        source, destination = struct.unpack_from("!HH", packet, (packet[0] & 15) * 4)
        if destination == ROCE_V2:
            ports.add(source)
    print(*sorted(ports))


if __name__ == "__main__":
    main()
