"""Lines of seconds over lengths of slices, a panel for each thing that is varied: the plots of study_overlap.py and study_chunks.py."""

import math

WIDE, LEFT, TOP, GAP = 190, 50, 26, 20
LINE = 13


def svg(title: str, rows: list[list[tuple[str, dict]]], styles: dict[str, tuple[str, bool]], tall: int = 260) -> str:
    """A plot, both axes logarithmic.

    Parameters
    ----------
    rows
        Rows of panels: name, which may have several lines, and for each line of the plot {x: seconds}; None is not drawn.
    styles
        Of lines by their names, in the order of the legend: colour, and whether they are dashed.
    tall
        Height of a panel.
    """
    lines = [points for row in rows for _, panel in row for points in panel.values()]
    every = [y for points in lines for y in points.values() if y]
    xs = sorted({x for points in lines for x in points})
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    high = max(high, low + 1)
    first, last = math.log10(xs[0]), math.log10(xs[-1])
    below = 90  # the legend
    above = LINE * max(name.count("\n") + 1 for row in rows for name, _ in row)
    step = above + tall + 30
    width = LEFT + max(map(len, rows)) * (WIDE + GAP) + 10
    height = TOP + len(rows) * step - 30 + below
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           '<rect width="100%" height="100%" fill="white"/>', f'<text x="{LEFT}" y="18" font-size="13">{title}</text>']  # fmt: skip
    for down, row in enumerate(rows):
        top = TOP + down * step + above
        y_of = lambda v, top=top: top + tall * (high - math.log10(v)) / (high - low)
        for across, (name, panel) in enumerate(row):
            x0 = LEFT + across * (WIDE + GAP)
            x_of = lambda x, x0=x0: x0 + 15 + (WIDE - 30) * (math.log10(x) - first) / ((last - first) or 1)
            out.append(f'<rect x="{x0}" y="{top}" width="{WIDE}" height="{tall}" fill="none" stroke="#888"/>')
            for number, text in enumerate(reversed(name.split("\n"))):
                out.append(f'<text x="{x0 + WIDE / 2}" y="{top - 6 - LINE * number}" text-anchor="middle">{text}</text>')
            for power in range(low, high + 1):
                y = y_of(10**power)
                out.append(f'<line x1="{x0}" x2="{x0 + WIDE}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
                if across == 0:
                    out.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:g} s</text>')
            for x in xs:
                out.append(f'<text x="{x_of(x):.1f}" y="{top + tall + 15}" text-anchor="middle">{x}</text>')
            for line, (colour, dashed) in styles.items():
                points = [(x_of(x), y_of(y)) for x, y in panel.get(line, {}).items() if y]
                path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
                dashes = ' stroke-dasharray="5,3"' if dashed else ""
                out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
                out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    for number, (line, (colour, _)) in enumerate(styles.items()):
        x, y = LEFT + (number % 3) * 240, height - below + 38 + 20 * (number // 3)
        out.append(f'<line x1="{x}" x2="{x + 24}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{x + 30}" y="{y + 4}">{line}</text>')
    return "\n".join([*out, "</svg>", ""])
