# SPDX-License-Identifier: Apache-2.0
"""Draws lines over time as SVG, with the standard library only."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 1000, 520
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 70, 60
# The colors also differ in brightness, for print and for color-blind readers.
COLORS = ["#222222", "#0b5fa5", "#d9772b", "#3a8f5c", "#a34d9c", "#6b6b6b", "#c2a200", "#57b4d8", "#b03030"]
GREY = "#555555"


def nice_step(span, most):
    """The smallest of 1, 2, 5, 10, 20, ... that gives at most `most` steps."""
    step = 1e-3
    while True:
        for factor in (1, 2, 5):
            if span / (step * factor) <= most:
                return step * factor
        step *= 10


class Plot:
    """One diagram. Lines are [(seconds, value)]."""

    def __init__(self, title, subtitle, label, span, highest):
        self._begin, self._end = span
        step = nice_step(highest, 8)
        self._top = step * -(-highest // step)
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="DejaVu Sans, Helvetica, sans-serif">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            text(LEFT, 28, title, size=18, weight="bold"),
            text(LEFT, 50, subtitle, color=GREY)]
        self._legend = 0
        self._axes(label, step)

    def line(self, name, points, width=1.6, dashes=""):
        color = COLORS[self._legend % len(COLORS)]
        inside = [(time, value) for time, value in points if self._begin <= time <= self._end]
        where = " ".join(f"{self._x(time):.1f},{self._y(value):.1f}" for time, value in inside)
        style = f'fill="none" stroke="{color}" stroke-width="{width}" stroke-dasharray="{dashes}"'
        self._parts.append(f'<polyline points="{where}" {style}/>')
        y = TOP + 12 + 24 * self._legend
        x = WIDTH - RIGHT + 20
        self._parts.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 26}" y2="{y - 4}" {style}/>')
        self._parts.append(text(x + 34, y, name))
        self._legend += 1

    def level(self, value, begin, end):
        """A dashed grey line between two times: what could be reached."""
        self._parts.append(
            f'<line x1="{self._x(begin):.1f}" y1="{self._y(value):.1f}" x2="{self._x(end):.1f}" '
            f'y2="{self._y(value):.1f}" stroke="#999999" stroke-width="1.4" stroke-dasharray="6 4"/>')

    def moment(self, time, words):
        x = self._x(time)
        self._parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" '
                           'stroke="#b03030" stroke-width="1.2" stroke-dasharray="3 3"/>')
        self._parts.append(text(x + 5, TOP - 4, words, color="#b03030", size=12))

    def svg(self):
        return "\n".join([*self._parts, "</svg>"]) + "\n"

    def _x(self, time):
        return LEFT + (time - self._begin) / (self._end - self._begin) * (WIDTH - LEFT - RIGHT)

    def _y(self, value):
        return HEIGHT - BOTTOM - value / self._top * (HEIGHT - TOP - BOTTOM)

    def _axes(self, label, step):
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        for i in range(round(self._top / step) + 1):
            y = self._y(i * step)
            self._parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e3e3e3"/>')
            self._parts.append(text(LEFT - 8, y + 4, f"{i * step:g}", color=GREY, anchor="end"))
        tick = nice_step(self._end - self._begin, 12)
        count = int((self._end - self._begin) / tick + 1e-6)
        for i in range(count + 1):
            x = self._x(self._begin + i * tick)
            self._parts.append(f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}" stroke="{GREY}"/>')
            self._parts.append(text(x, bottom + 20, f"{i * tick:g}", color=GREY, anchor="middle"))
        self._parts.append(f'<line x1="{LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="{GREY}"/>')
        self._parts.append(text((LEFT + right) / 2, HEIGHT - 16, "time (s)", color=GREY, anchor="middle"))
        middle = (TOP + bottom) / 2
        self._parts.append(text(24, middle, label, color=GREY, anchor="middle",
                                more=f' transform="rotate(-90 24 {middle})"'))


def text(x, y, words, color="#222222", size=13, weight="normal", anchor="start", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}"{more}>{escape(words)}</text>')
