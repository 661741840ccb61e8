# SPDX-License-Identifier: Apache-2.0
"""Finds the moment from which the rails together carry what they can again. Pure calculations."""

AVERAGE_S = 0.050  # the rate at time t is the average from t to t + this
ENOUGH = 0.95      # of the sum of the rails' rates


class Samples:
    """Bytes of each rail at certain times, as `softnic traffic` prints them."""

    def __init__(self, times, totals):
        self.times = times    # seconds, ascending
        self.totals = totals  # for each rail: bytes at these times

    @classmethod
    def parse(cls, lines, ports):
        """Lines of `softnic traffic`; the ports in the order of the rails."""
        names = lines[0].split()
        columns = [names.index(port) for port in ports]
        rows = [line.split() for line in lines[1:]]
        rows = [row for row in rows if len(row) == len(names)]  # the last one may be cut
        return cls([float(row[0]) for row in rows],
                   [[int(row[column]) for row in rows] for column in columns])

    def rates(self, rail, width=AVERAGE_S):
        """[(time, MB/s)] of a rail: the average from that time on."""
        return averages(self.times, self.totals[rail], width)

    def sum_rates(self):
        """The same of all rails together."""
        return averages(self.times, [sum(each) for each in zip(*self.totals)], AVERAGE_S)

    def last_change(self):
        """When the last byte was seen to arrive: the end of the traffic."""
        sums = [sum(each) for each in zip(*self.totals)]
        return next((time for time, total in zip(self.times, sums) if total == sums[-1]), 0.0)


def averages(times, totals, width):
    found = []
    end = 0
    for begin, time in enumerate(times):
        while end < len(times) and times[end] < time + width:
            end += 1
        if end == len(times):
            break
        found.append((time, (totals[end] - totals[begin]) / (times[end] - time) / 1e6))
    return found


def time_to_recover(rates, changed_at, until, wanted):
    """Seconds from `changed_at` to the first moment at which the rate is `wanted`, and from which it
    is that on average until `until`; None if there is none. Not "never below": another process that
    takes the processor for some milliseconds lowers one average, even of a single rail."""
    inside = [(time, rate) for time, rate in rates if changed_at <= time and time + AVERAGE_S <= until]
    total = sum(rate for _, rate in inside)
    for left, (time, rate) in zip(range(len(inside), 0, -1), inside):
        if rate >= wanted and total >= wanted * left:
            return time - changed_at
        total -= rate
    return None


def mean_rate(rates, begin, until):
    inside = [rate for time, rate in rates if begin <= time and time + AVERAGE_S <= until]
    return sum(inside) / len(inside) if inside else 0.0
