# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of apt-get or ninja, parsed from its output.

Usage: COMMAND 2>&1 | progress.py (installing|building)

On a terminal it updates one line each second. Otherwise it prints a line at once, then one every ten
seconds, and after a minute and a half one every minute. Errors and warnings of the command are passed on;
the whole output of apt-get is written to the file that PROGRESS_LOG names. After Ctrl-C it waits for the command's
end, and ends with status 130.
"""

import os
import re
import select
import signal
import sys
import time

NINJA = re.compile(r"\[(\d+)/(\d+)\] ")
APT_COUNT = re.compile(r"(\d+) upgraded, (\d+) newly installed")
APT_STEP = re.compile(r"(Get:\d+|Unpacking|Setting up) ")
STEPS_OF_A_PACKAGE = 3
SECONDS_BETWEEN_LINES = 10
LATER_SECONDS_BETWEEN_LINES = 60
LATER = 90
# Before this, the remaining time cannot be estimated.
LEAST_SHARE_TO_PREDICT = 0.1


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Progress:
    def __init__(self, word):
        self.word = word
        self.done = self.all = 0
        self.start = time.monotonic()
        self.is_terminal = sys.stdout.isatty()
        self.next_line = 0.0
        self.is_stopped = False
        signal.signal(signal.SIGINT, self.stop)

    def stop(self, *_):
        self.is_stopped = True

    def text(self):
        seconds = time.monotonic() - self.start
        words = [self.word]
        if self.all:
            words.append(f"{self.done} of {self.all}")
        words.append(f"{duration(seconds)} so far")
        if self.all and self.done >= self.all * LEAST_SHARE_TO_PREDICT and seconds >= 1:
            words.append(f"about {duration(seconds * (self.all - self.done) / self.done)} to go")
        return f"{words[0]}: " + ", ".join(words[1:])

    def show(self):
        seconds = time.monotonic() - self.start
        if self.is_terminal:
            sys.stdout.write(f"\r\033[K{self.text()}")
            sys.stdout.flush()
        elif seconds >= self.next_line:
            print(self.text(), flush=True)
            wait = LATER_SECONDS_BETWEEN_LINES if seconds >= LATER else SECONDS_BETWEEN_LINES
            self.next_line = seconds + wait

    def clear(self):
        if self.is_terminal:
            sys.stdout.write("\r\033[K")

    def say(self, line):
        self.clear()
        print(line, flush=True)


def take_from_ninja(progress, line):
    step = NINJA.match(line)
    if step:
        progress.done, progress.all = int(step[1]), int(step[2])
    elif not line.startswith("ninja: Entering directory"):
        progress.say(line)


def take_from_apt(progress, line, log):
    log.write(line + "\n")
    log.flush()
    count = APT_COUNT.match(line)
    if count:
        progress.all = STEPS_OF_A_PACKAGE * (int(count[1]) + int(count[2]))
    elif APT_STEP.match(line) and progress.all:
        progress.done = min(progress.done + 1, progress.all)


def lines_of_input(tick):
    """Yields each line; calls tick() each second in between."""
    rest = b""
    while True:
        if not select.select([0], [], [], 1.0)[0]:
            tick()
            continue
        data = os.read(0, 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        tick()
    if rest:
        yield rest


def main():
    word = sys.argv[1]
    progress = Progress(word)
    progress.show()
    with open(os.environ.get("PROGRESS_LOG", os.devnull), "w", encoding="utf-8") as log:
        for raw in lines_of_input(progress.show):
            line = raw.decode(errors="replace").rstrip("\r")
            progress.is_stopped |= line.startswith("ninja: build stopped: interrupted")
            if progress.is_stopped:  # what the interrupted command says about it
                continue
            if word == "installing":
                take_from_apt(progress, line, log)
            else:
                take_from_ninja(progress, line)
    progress.clear()
    if progress.is_stopped:
        print("stopped; the same command continues", flush=True)
        sys.exit(130)


main()
