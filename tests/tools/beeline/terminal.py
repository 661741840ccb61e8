# SPDX-License-Identifier: Apache-2.0
"""Runs a program in a terminal.

Usage: terminal.py COLUMNS PROGRAM ARGUMENTS...
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios


class Session:
    def __init__(self, columns, words, **variables):
        self.bytes = b""
        self.fd, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # Not as the leader of a session: when one ends, the kernel discards what nobody has read yet.
        self.program = subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal,
                                        env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **variables})
        os.close(terminal)

    def read(self):
        """Whether there was more. A part may end in the middle of a character or of a line break."""
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # the program has ended
            more = b""
        self.bytes += more
        return bool(more)

    @property
    def said(self):
        return self.bytes.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, text):
        while text not in self.said:
            if not self.read():
                raise AssertionError(f"{text!r} is not in {self.said!r}")

    def end(self):
        """The exit status, and all that was said."""
        while self.read():
            pass
        os.close(self.fd)
        return self.program.wait(), self.said

    def kill(self):
        self.program.kill()
        self.end()


def run(columns, words, **variables):
    """The exit status, and all that the program has written to the terminal."""
    return Session(columns, words, **variables).end()


def plain(text):
    """Without colors."""
    return re.sub("\033\\[[0-9;]*m", "", text)


if __name__ == "__main__":
    STATUS, TEXT = run(int(sys.argv[1]), sys.argv[2:])
    print(TEXT, end="")
    sys.exit(STATUS)
