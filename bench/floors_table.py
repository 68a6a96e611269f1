# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table and the plot of floors.py, limits.py and study_chunks.py, and where they are kept."""

import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from harness import REFERENCE, ROOT
from run import spread

FLOOR = "floor"
REQUESTS = "requests"  # the floor of whoever gives requests their answers in their order, and keeps what it decoded (codec.c)
PAGE, PLOT = ROOT / "docs" / "status" / "performance.md", ROOT / "docs" / "status" / "performance.svg"
SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3}
COLOURS = {"netCDF-C": "#d55e00", "best peer": "#cc79a7", "before": "#56b4e9", "Zonda": "#0072b2"}


@dataclass
class Work:
    """A row: its name, and what of it is shown."""

    name: str
    reach: str = ""  # "20 ns", "1.5 x floor", "1.2 x requests", "3 x netCDF-C", "0.95 of floor"; with "or", one of several
    unit: str = "ms"
    ahead: bool = False  # netCDF-C and the peers are to be slower
    more_is_better: bool = False


def taken(row: dict, names: dict | None = None, limit: str = "", what: str = "seconds") -> dict:
    """What reads.py, writes.py, copies.py and python.py found in a case, as a row here. `names` says who of them is which column (all, without it);
    `limit` is the floor, by default the first one."""
    limits = row.get("limit", {})
    floor = limits.get(limit) or next(iter(limits.values()), [])
    more = ({FLOOR: floor} if floor else {}) | ({REQUESTS: limits[REQUESTS]} if limits.get(REQUESTS) else {})
    here = {name: names[name] if names else name for name in row[what] if name not in row["errors"] and (not names or name in names)}
    errors = {(names or {}).get(name, name): why for name, why in row["errors"].items()}
    return {"name": row["name"], "unit": "ms", "values": {here[n]: row[what][n] for n in here} | more, "errors": errors}


def figure(x: float) -> str:
    """Three digits, without a power of ten."""
    text = f"{x:.3g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def shown(values: list, scale: float = 1) -> str:
    """Median (first to third quartile)."""
    if not values:
        return ""
    low, middle, high = (figure(x * scale) for x in spread(values))
    return f"{middle} ({low} to {high})"


def ratios(a: list | None, b: list | None) -> list:
    """Round by round: both met the same machine."""
    return [x / y for x, y in zip(a or [], b or []) if y]


def best_peer(row, values: dict) -> tuple[str, list]:
    """Who of the wheel's library and h5py (and of all others but the builds of Zonda) does it best."""
    peers = {n: v for n, v in values.items() if v and n not in (REFERENCE, "zonda", "before", FLOOR, REQUESTS)}
    if not peers:
        return "", []
    pick = max if row.more_is_better else min
    name = pick(peers, key=lambda n: statistics.median(peers[n]))
    return name, peers[name]


def over_floor(row, values: list | None, floor: list | None) -> list:
    """Times the floor; where more is better, the floor by it: 1 is reached."""
    return ratios(floor, values) if row.more_is_better else ratios(values, floor)


def is_reached(row, values: dict, reach: str) -> bool:
    """Whether the median of Zonda is what one part of `reach` asks for."""
    mine, floor, number = values.get("zonda"), values.get(FLOOR), float(reach.split()[0])
    if not mine:
        return False
    for name in (FLOOR, REQUESTS):
        if reach.endswith(f"x {name}"):
            return bool(values.get(name)) and statistics.median(ratios(mine, values[name])) <= number
    if reach.endswith("x netCDF-C"):
        return bool(values.get(REFERENCE)) and statistics.median(ratios(values[REFERENCE], mine)) >= number
    if reach.endswith("of floor"):
        return bool(floor) and statistics.median(mine) >= number * statistics.median(floor)
    if row.more_is_better:
        return statistics.median(mine) >= number
    return statistics.median(mine) * SCALES[row.unit] <= number


def verdict(row, values: dict) -> str:
    """What is to be reached, and whether Zonda's median does."""
    mine = values.get("zonda")
    said, met = [], True
    if row.reach:
        met = any(is_reached(row, values, one) for one in row.reach.split(" or "))
        said.append(row.reach)
    if row.ahead:
        others = [values.get(REFERENCE), best_peer(row, values)[1]]
        met = met and bool(mine) and all(statistics.median(mine) < statistics.median(o) for o in others if o)
        said.append("ahead of netCDF-C")
    return f"{', '.join(said)}: {'met' if met else 'missed'}" if said else ""


def table(rows: list, found: list[dict], libs: dict) -> str:
    before = "before" in libs
    beside = any(best_peer(row, one["values"])[0] for row, one in zip(rows, found))
    in_order = any(REQUESTS in one["values"] for one in found)
    head = ["work", "unit", "netCDF-C", *(["best peer"] if beside else []), *(["before"] if before else []), "Zonda", "floor", "Zonda / floor", *([REQUESTS, f"Zonda / {REQUESTS}"] if in_order else []), "netCDF-C / Zonda",
            *(["Zonda / before"] if before else []), "to reach"]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for row, one in zip(rows, found):
        values, scale = one["values"], SCALES.get(row.unit, 1)
        peer, peers = best_peer(row, values)

        def cell(name, values=values, scale=scale, one=one):
            return "failed" if name in one["errors"] else shown(values.get(name), scale)

        over = ratios(values.get("zonda"), values.get(FLOOR))
        cells = [row.name, row.unit, cell(REFERENCE), *([f"{peer} {shown(peers, scale)}" if peer else ""] if beside else [])]
        cells += [cell("before")] if before else []
        cells += [cell("zonda"), cell(FLOOR), figure(statistics.median(over)) if over else ""]
        cells += [cell(REQUESTS), shown(ratios(values.get("zonda"), values.get(REQUESTS)))] if in_order else []
        cells += [shown(ratios(values.get(REFERENCE), values.get("zonda")))]
        cells += [shown(ratios(values.get("zonda"), values.get("before")))] if before else []
        lines.append([*cells, verdict(row, values)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plot(rows: list, found: list[dict]) -> str:
    """A line for each row: how many times the floor each takes, logarithmic."""
    points = []
    for row, one in zip(rows, found):
        values, floor = one["values"], one["values"].get(FLOOR)
        four = {"netCDF-C": values.get(REFERENCE), "best peer": best_peer(row, values)[1], "before": values.get("before"), "Zonda": values.get("zonda")}
        points.append((row.name, {n: spread(over) for n, v in four.items() if (over := over_floor(row, v, floor)) and min(over) > 0}))
    every = [x for _, four in points for three in four.values() for x in three if x > 0]
    high = max(1, math.ceil(math.log10(max(every, default=10))))
    low = min(0, math.floor(math.log10(min(every, default=1)) * 4) / 4)
    left, top, wide, step = 420, 56, 560, 24
    tall = step * len(points)

    def at(x):
        return left + wide * (math.log10(max(x, 10**low)) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 30}" height="{top + tall + 40}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    for k, (name, colour) in enumerate((n, c) for n, c in COLOURS.items() if any(n in four for _, four in points)):
        out.append(f'<circle cx="{left + 10 + 120 * k}" cy="18" r="5" fill="{colour}"/><text x="{left + 20 + 120 * k}" y="22">{name}</text>')
    out.append('<text x="12" y="22" font-size="13">Times the floor (medians and quartiles); left is better</text>')
    for power in range(math.ceil(low), high + 1):
        x = at(10**power)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 10}" y2="{top + tall}" stroke="{"#444" if power == 0 else "#ddd"}"/>')
        out.append(f'<text x="{x:.1f}" y="{top + tall + 18}" text-anchor="middle">{10**power:g}</text>')
    for k, (name, four) in enumerate(points):
        y = top + step * k + step / 2
        out.append(f'<text x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{name.replace("&", "&amp;")}</text>')
        out.append(f'<line x1="{left}" x2="{left + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>')
        for who, (first, middle, third) in four.items():
            out.append(f'<line x1="{at(first):.1f}" x2="{at(third):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{COLOURS[who]}" stroke-width="2"/>')
            out.append(f'<circle cx="{at(middle):.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[who]}" fill-opacity="0.85"/>')
    return "\n".join([*out, "</svg>", ""])


def put(page: Path, mark: str, text: str) -> None:
    """Puts a text between the marks of a page."""
    begin, end = (f"<!-- {mark}: {which} -->" for which in ("begin", "end"))
    old = page.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        raise SystemExit(f"{page.relative_to(ROOT)} has not both marks of {mark}")
    page.write_text(re.sub(re.escape(begin) + ".*" + re.escape(end), lambda _: f"{begin}\n{text}\n{end}", old, flags=re.S))


def measured(heading: str, text: str) -> str:
    """A table below what it was measured on."""
    return "\n".join("    " + line for line in heading.splitlines()) + f"\n\n{text}"


def write(heading: str, text: str, rows: list, found: list[dict], mark: str = "bench/floors.py", picture: Path = PLOT) -> list[str]:
    """Puts the table between the marks of the page, and the plot beside it."""
    put(PAGE, mark, measured(heading, text))
    picture.write_text(plot(rows, found))
    return [str(path.relative_to(ROOT)) for path in (PAGE, picture)]
