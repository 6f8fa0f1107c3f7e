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
        for kind, points in self.lines.items():
            axes.plot(*zip(*points, strict=True), label=kind)
        axes.set_xlabel("queries")
        axes.set_ylabel("useless look-ups")
        axes.legend()
        return axes

    def __repr__(self):
        lines = [f"{'filter':<14}{'bits/key':>10}{'useless':>10}{'share':>11}"]
        for row in self.rows:
            lines.append(f"{row['filter']:<14}{row['bits_per_key']:>10.1f}{row['useless']:>10,}{row['share']:>11.5f}")
        return "\n".join(lines)

    def _repr_html_(self):
        cells = "".join(
            f"<tr><td>{row['filter']}</td><td>{row['bits_per_key']:.1f}</td><td>{row['useless']:,}</td><td>{row['share']:.5f}</td></tr>"
            for row in self.rows
        )
        return f"<table><tr><th>filter</th><th>bits per key</th><th>useless look-ups</th><th>share</th></tr>{cells}</table>"


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
