"""Filters beside each other, on your own keys and queries."""

import besom


class Comparison:
    """What came of a comparison.

    ``rows`` has a dict for each filter: its kind, bits per key, useless look-ups, and their share of all queries for absent keys.
    ``table()`` is a DataFrame of these if pandas or polars is there, else the rows. ``plot()`` draws useless look-ups over queries.
    """

    def __init__(self, rows, lines):
        self.rows, self.lines = rows, lines

    def table(self):
        for package in ("pandas", "polars"):
            try:
                return __import__(package).DataFrame(self.rows)
            except ImportError:
                continue
        return self.rows

    def plot(self, axes=None):
        """Draws with matplotlib, and returns the axes."""
        if axes is None:
            import matplotlib.pyplot

            _, axes = matplotlib.pyplot.subplots()
        # The legend from top to bottom as the lines end.
        for kind, points in sorted(self.lines.items(), key=lambda line: -line[1][-1][1]):
            axes.plot(*zip(*points, strict=True), label=kind)
        axes.set_xlabel("queries for missing keys")
        axes.set_ylabel("useless look-ups so far")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.locator_params(axis="x", nbins=5)
        axes.margins(x=0)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()
        return axes

    def __repr__(self):
        lines = [f"{'filter':<14}{'bits/key':>10}{'useless':>10}{'share':>11}"]
        for row in self.rows:
            lines.append(f"{row['filter']:<14}{row['bits_per_key']:>10.1f}{row['useless']:>10,}{row['share']:>11.5f}")
        return "\n".join(lines)

    def _repr_html_(self):
        def line(cell, name, *figures):
            figures = "".join(f'<{cell} style="text-align:right">{figure}</{cell}>' for figure in figures)
            return f'<tr><{cell} style="text-align:left">{name}</{cell}>{figures}</tr>'

        rows = [line("th", "filter", "bits per key", "useless look-ups", "share")]
        for row in self.rows:
            rows.append(line("td", row["filter"], f"{row['bits_per_key']:.1f}", f"{row['useless']:,}", f"{row['share']:.5f}"))
        return f"<table>{''.join(rows)}</table>"


def compare(keys, queries, *, kinds=("extension", "telescoping", "bins", "bloom"), rate=1 / 256, seed=None):
    keys, queries = list(keys), list(queries)
    stored = {besom.key_bytes(key) for key in keys}
    absent = [key for key in queries if besom.key_bytes(key) not in stored]
    step = max(1, len(absent) // 200)
    rows, lines = [], {}
    for kind in kinds:
        filter = besom.build(kind, capacity=max(1, len(stored)), rate=rate, seed=seed)
        filter.update(stored)
        useless, points = 0, [(0, 0)]
        for number, key in enumerate(absent, 1):
            if key in filter:
                useless += 1
                filter.adapt(key)
            if number % step == 0:
                points.append((number, useless))
        bits = 8 * filter.nbytes / max(1, len(stored))
        share = useless / max(1, len(absent))
        rows.append({"filter": kind, "bits_per_key": bits, "useless": useless, "share": share})
        lines[kind] = points
    return Comparison(rows, lines)
