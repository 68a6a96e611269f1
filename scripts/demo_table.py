"""Prints the demonstration's table from the JSON lines that scripts/demo.sh collected.

usage: demo_table.py RESULTS.jsonl

A line is {"type", "who", "round", "result"}; round 0 was the warm-up and is left out.
Exit status 1 if the libraries did not hand back the same values.
"""

import json
import statistics
import sys
from pathlib import Path

NAMES = {
    "reference": "distribution's library",
    "zonda": "Zonda",
    "raw": "raw sequential, 1 MiB blocks",
    "convert": "convert each record once + I/O",
    "fortran": "Fortran, a variable a statement",
    "fortran-step": "Fortran, a step a statement",
}


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]

    digests: dict[str, set[str]] = {}
    seconds: dict[tuple[str, str, str], list[float]] = {}
    size, libraries, model = {}, {}, {}
    for row in rows:
        result = row["result"]
        direction = "read" if " read" in result["workload"] else "write"
        size[row["type"]] = result["bytes"]
        if result["digest"] is not None:
            digests.setdefault(row["type"], set()).add(result["digest"])
            libraries[row["who"]] = result["library"].strip(" $")
            model[row["type"]] = result["params"]
        if row["round"] > 0:
            seconds.setdefault((row["type"], row["who"], direction), []).append(result["seconds"])
    for kind, found in digests.items():
        if len(found) != 1:
            print(f"{kind}: the libraries gave different values ({', '.join(sorted(found))})")
            return 1

    repetitions = max(len(times) for times in seconds.values())
    print(f"distribution's library: {libraries['reference']}; Zonda: {libraries['zonda']}")
    print(f"Median of {repetitions}; files stay in the page cache. /raw, /Fortran: time divided by")
    print("that of the raw sequential run, and of the Fortran run with a variable a statement.")
    for kind, nbytes in size.items():
        p = model[kind]
        print(
            f"\nhistory file, {kind}{' from double' if kind == 'float' else ''}: "
            f"{nbytes / 1e6:.0f} MB, {p['steps']} steps of {p['fields2d'] + p['fields3d']} record "
            f"variables, {p['lat']} latitudes in {p['order']} order"
        )
        columns = f"{'s':>8}{'MB/s':>8}{'/raw':>7}{'/Fortran':>10}"
        print(f"{'':31}{'write':>{len(columns)}}{'read back':>{len(columns)}}")
        print(f"{'':31}{columns}{columns}")

        def median(who: str, direction: str, kind: str = kind) -> float:
            return max(statistics.median(seconds[kind, who, direction]), 1e-9)

        for who, name in NAMES.items():
            line = f"{name:31}"
            for direction in ("write", "read"):
                s = median(who, direction)
                raw, fortran = median("raw", direction), median("fortran", direction)
                line += f"{s:8.3f}{nbytes / s / 1e6:8.0f}{s / raw:7.2f}{s / fortran:10.2f}"
            print(line)
        faster = [median("reference", d) / median("zonda", d) for d in ("write", "read")]
        print(f"Zonda is {faster[0]:.2f} x as fast writing, {faster[1]:.2f} x reading back.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
