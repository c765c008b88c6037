"""A progress bar and loss curves, for terminals and notebooks.

    for x, y in progress(loader, "epoch 1"):
        ...
    losses = Curve("loss")
    losses.add(0.7)           # as often as you like
    losses                    # a notebook shows it; losses.save("loss.svg")
"""

import sys
import time
from xml.sax.saxutils import escape


def _in_notebook():
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _clock(seconds):
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class progress:
    """Iterates over `items` and shows how far it is: a bar on a terminal, HTML in a notebook, nothing elsewhere.

    note("loss 0.31") puts a text behind the bar. It is drawn at most ten times a second.
    """

    def __init__(self, items, title="", total=None, file=None, width=24):
        self._items, self._title, self._width = items, title, width
        if total is None and hasattr(items, "__len__"):
            total = len(items)
        self._total, self._file, self._text = total, file or sys.stderr, ""
        self._done, self._began, self._drawn, self._shown = 0, 0.0, 0.0, None

    def note(self, text):
        self._text = str(text)

    def __len__(self):
        if self._total is None:
            raise TypeError("the number of items is not known")
        return self._total

    def __iter__(self):
        self._done, self._began, self._drawn = 0, time.monotonic(), 0.0
        self._draw()
        try:
            for item in self._items:
                yield item
                self._done += 1
                if time.monotonic() - self._drawn >= 0.1:
                    self._draw()
        finally:
            self._draw(last=True)

    def line(self):
        """The text of the bar as it is now."""
        spent = time.monotonic() - self._began
        rate = self._done / spent if spent > 0 else 0.0
        parts = [self._title] if self._title else []
        if self._total:
            share = min(1.0, self._done / self._total)
            full = int(share * self._width)
            bar = "█" * full + "·" * (self._width - full)
            parts.append(f"{bar} {100 * share:3.0f} %  {self._done}/{self._total}")
            if 0 < self._done < self._total:
                parts.append(f"{_clock((self._total - self._done) / rate)} left")
        else:
            parts.append(str(self._done))
        parts.append(f"{_clock(spent)}  {rate:.3g}/s")
        return "  ".join(parts + ([self._text] if self._text else []))

    def _draw(self, last=False):
        self._drawn = time.monotonic()
        if _in_notebook():
            from IPython.display import HTML, display
            shown = HTML(f"<pre style='margin:0'>{escape(self.line())}</pre>")
            if self._shown is None:
                self._shown = display(shown, display_id=True)
            else:
                self._shown.update(shown)
        elif getattr(self._file, "isatty", lambda: False)():
            self._file.write("\r\x1b[K" + self.line() + ("\n" if last else ""))
            self._file.flush()


class Curve:
    """Numbers over steps, drawn as SVG; several names make several lines."""

    COLORS = ("#1f6feb", "#d9541e", "#2da44e", "#8a3ab9", "#bf8700")

    def __init__(self, title="loss", width=640, height=240):
        self.title, self._width, self._height, self.lines = title, width, height, {}

    def add(self, value, step=None, name="train"):
        """Adds a number, or a tensor with one element, which is computed now."""
        line = self.lines.setdefault(name, [])
        step = step if step is not None else (line[-1][0] + 1 if line else 0)
        line.append((float(step), float(value)))

    def svg(self):
        """The picture as text. Numbers that are not finite are left out."""
        import math
        points = [p for line in self.lines.values() for p in line if math.isfinite(p[1])]
        left, top, right, bottom = 56, 28, self._width - 12, self._height - 26
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self._width}" height="{self._height}" '
               'font-family="sans-serif" font-size="11" fill="#555"><rect width="100%" height="100%" fill="#fff"/>',
               f'<text x="{left}" y="18" font-size="13" fill="#222">{escape(self.title)}</text>']
        if points:
            low_x, high_x = min(p[0] for p in points), max(p[0] for p in points)
            low_y, high_y = min(p[1] for p in points), max(p[1] for p in points)
            wide, high = (high_x - low_x) or 1.0, (high_y - low_y) or 1.0
            for k in range(5):
                y, value = bottom - (bottom - top) * k / 4, low_y + high * k / 4
                out.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>'
                           f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
            for x, anchor, value in ((left, "start", low_x), (right, "end", high_x)):
                out.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="{anchor}">{value:g}</text>')
            for k, (name, line) in enumerate(self.lines.items()):
                color = self.COLORS[k % len(self.COLORS)]
                places = " ".join(f"{left + (right - left) * (x - low_x) / wide:.1f},"
                                  f"{bottom - (bottom - top) * (y - low_y) / high:.1f}" for x, y in line if math.isfinite(y))
                out.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="1.5"/><text x="{right}" '
                           f'y="{18 + 12 * k}" text-anchor="end" fill="{color}">{escape(name)}</text>')
        return "".join([*out, "</svg>"])

    _repr_svg_ = svg

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.svg())

    def __repr__(self):
        last = ", ".join(f"{name} {line[-1][1]:.4g}" for name, line in self.lines.items() if line)
        return f"Curve({self.title!r}: {last or 'empty'})"
