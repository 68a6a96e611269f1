"""Compares two classic netCDF files with scipy's own reader, which shares no code with Zonda or
with netCDF-C: dimensions, attributes, variables, types and every value, bit by bit. Formats CDF-1
and CDF-2 (scipy knows no other).

usage: compare_classic.py A B

Prints one line saying what was compared, or one line per difference (exit status 1).
"""

import sys

import numpy as np
import scipy
from scipy.io import netcdf_file


def attributes(owner) -> dict:
    """Attributes of a file or variable, comparable with ==."""
    return {
        name: (np.asarray(value).dtype.str, np.asarray(value).tobytes())
        for name, value in owner._attributes.items()  # scipy has no public list of them
    }


def differences(a: netcdf_file, b: netcdf_file) -> list[str]:
    found = []
    if list(a.dimensions.items()) != list(b.dimensions.items()):
        found.append(f"dimensions: {dict(a.dimensions)} and {dict(b.dimensions)}")
    if attributes(a) != attributes(b):
        found.append("global attributes")
    if list(a.variables) != list(b.variables):
        found.append(f"variables: {list(a.variables)} and {list(b.variables)}")
    for name in a.variables.keys() & b.variables.keys():
        x, y = a.variables[name], b.variables[name]
        if x.dimensions != y.dimensions or x.shape != y.shape or x.data.dtype != y.data.dtype:
            found.append(f"{name}: shape or type")
        elif attributes(x) != attributes(y):
            found.append(f"{name}: attributes")
        else:
            # Compared as bytes: NaN equals NaN, and -0 is not 0. Step by step, to bound memory.
            steps = [...] if x.data.ndim == 0 else range(len(x.data))
            wrong = sum(x.data[i].tobytes() != y.data[i].tobytes() for i in steps)
            if wrong:
                found.append(f"{name}: values in {wrong} of {len(steps)} places")
    return found


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with (
        netcdf_file(sys.argv[1], mmap=False) as a,
        netcdf_file(sys.argv[2], mmap=False) as b,
    ):
        found = differences(a, b)
        values = sum(v.data.size for v in a.variables.values())
        variables = len(a.variables)
    if found:
        print("\n".join(found))
        return 1
    print(f"scipy {scipy.__version__}: {variables} variables, {values} values, all attributes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
