# SPDX-License-Identifier: Apache-2.0
"""Slows one rail down to a quarter in the middle of a stream and restores it later."""

import subprocess
import sys
import time

from recovery import AVERAGE_S, ENOUGH, Samples, mean_rate, time_to_recover
from svg import Plot
from test_bed import MEGABYTE, Failed, port_of

SIZE, DEPTH = 4 << 20, 8
EVERY = "5ms"
BEFORE_S, SLOW_S, AFTER_S = 1.5, 2.0, 2.5
GOAL_SLOWED_S, GOAL_RESTORED_S = 0.2, 1.0


class Sampler:
    """`softnic traffic` of a fabric, which may not exist yet."""

    def __init__(self, softnic, stream, folder_path):
        self._file = open(folder_path, "w+", encoding="utf-8")
        seconds = BEFORE_S + SLOW_S + AFTER_S + 60
        command = [softnic, "traffic", "--name", stream.name, "--every", EVERY, "--for", f"{seconds:g}s"]
        while True:
            self._process = subprocess.Popen(command, stdout=self._file, stderr=subprocess.DEVNULL)
            self._wait_for_lines(1)
            if self._process.poll() is None:
                return
            if stream.process.poll() is not None:
                stream.finish()
                raise Failed("the stream ended before it could be watched")

    def wait_for_traffic(self, ports):
        """Until a quarter of a megabyte has been sent, which connecting does not need."""
        while sum(each[-1] for each in self._samples(ports).totals if each) < MEGABYTE / 4:
            if self._process.poll() is not None:
                raise Failed("the stream ended before it could be watched")
            time.sleep(0.01)

    def finish(self, ports):
        self._process.terminate()
        self._process.wait()
        samples = self._samples(ports)
        self._file.close()
        return samples

    def _wait_for_lines(self, count):
        while len(self._lines()) < count and self._process.poll() is None:
            time.sleep(0.01)

    def _lines(self):
        self._file.flush()
        with open(self._file.name, encoding="utf-8") as file:
            return file.read().splitlines()

    def _samples(self, ports):
        return Samples.parse(self._lines(), ports)


def run(bed, rates, rail):
    """(samples, time of slowing, time of restoring, end of the traffic)"""
    ports = [port_of(i) for i in range(len(rates))]
    slowed = [rate / 4 if i == rail else rate for i, rate in enumerate(rates)]
    expected = (sum(rates) * (BEFORE_S + AFTER_S) + sum(slowed) * SLOW_S) * MEGABYTE
    stream = bed.stream(rates, SIZE, DEPTH, ["--iters", str(round(expected / SIZE))])
    sampler = Sampler(bed.softnic, stream, bed.path(f"{stream.name}.traffic"))
    sampler.wait_for_traffic(ports)
    time.sleep(BEFORE_S)
    set_rate(bed, stream, rail, slowed[rail])
    time.sleep(SLOW_S)
    set_rate(bed, stream, rail, rates[rail])
    stream.finish()
    samples = sampler.finish(ports)
    changes = [at for at, port, words in stream.log() if port == port_of(rail) and words.startswith("rate=")]
    if len(changes) != 2:
        raise Failed(f"{len(changes)} changes of the rate in the fabric's log, not 2")
    return samples, *changes, samples.last_change()


def set_rate(bed, stream, rail, rate):
    subprocess.run([bed.softnic, "ctl", "--name", stream.name, port_of(rail), f"rate={rate * MEGABYTE:.0f}"],
                   check=True)


def result_line(what, took, goal, mean):
    words = "not reached" if took is None else f"{took * 1000:.0f} ms"
    verdict = "met" if took is not None and took <= goal else "missed"
    return f"  {what:<12}{words:>14}{goal * 1000:>9.0f} ms   {verdict:<8}{mean:>10.3f}"


def report(bed, rates, rail, picture):
    """Prints how long the recovery took, and draws the picture. True if both goals were met."""
    samples, slowed_at, restored_at, end = run(bed, rates, rail)
    low = sum(rates) - rates[rail] * 3 / 4
    total = samples.sum_rates()
    # The last messages do not fill all rails.
    end -= 2 * DEPTH * SIZE / MEGABYTE / sum(rates)
    to_low = time_to_recover(total, slowed_at, restored_at, ENOUGH * low)
    to_high = time_to_recover(total, restored_at, end, ENOUGH * sum(rates))
    names = "+".join(f"{rate:g}" for rate in rates)
    print(f"\nRails of {names} MB/s; rail {rail} is slowed to {rates[rail] / 4:g} MB/s and restored after "
          f"{restored_at - slowed_at:.1f} s.\nTime until an average of {AVERAGE_S * 1000:.0f} ms stays at "
          f"{ENOUGH} of the sum, and the mean share of the sum in the whole phase\n")
    print(f"  {'':<12}{'time':>14}{'goal':>12}   {'':<8}{'share':>10}")
    print(result_line("slowed", to_low, GOAL_SLOWED_S, mean_rate(total, slowed_at, restored_at) / low))
    print(result_line("restored", to_high, GOAL_RESTORED_S, mean_rate(total, restored_at, end) / sum(rates)))
    draw(samples, rates, rail, (slowed_at, restored_at), picture)
    print(f"  the picture: {picture}", file=sys.stderr)
    return (to_low is not None and to_low <= GOAL_SLOWED_S
            and to_high is not None and to_high <= GOAL_RESTORED_S)


def draw(samples, rates, rail, changes, picture):
    slowed_at, restored_at = changes
    begin, end = slowed_at - 1.0, min(restored_at + AFTER_S, samples.last_change())
    names = "+".join(f"{rate:g}" for rate in rates)
    low = sum(rates) - rates[rail] * 3 / 4
    # A point shows the average around it, so that a change is drawn where it happened.
    middle = lambda points: [(at + AVERAGE_S / 2, rate) for at, rate in points]
    plot = Plot(f"Rails of {names} MB/s, rail {rail} slowed to a quarter and restored",
                f"messages of 4 MiB, {DEPTH} in flight; averages of {AVERAGE_S * 1000:.0f} ms; "
                "dashed: the sum that is possible", "rate (MB/s)", (begin, end), 1.1 * sum(rates))
    plot.level(sum(rates), begin, slowed_at)
    plot.level(low, slowed_at, restored_at)
    plot.level(sum(rates), restored_at, end)
    plot.line("all rails", middle(samples.sum_rates()), width=2.4)
    for i, rate in enumerate(rates):
        plot.line(f"rail {i} ({rate:g} MB/s)", middle(samples.rates(i)))
    plot.moment(slowed_at, "slowed")
    plot.moment(restored_at, "restored")
    with open(picture, "w", encoding="utf-8") as file:
        file.write(plot.svg())
