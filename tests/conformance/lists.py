"""The three committed lists and the report made of them.

reference.txt   CLASS NAME          what passes on the distribution's library, recorded by --baseline
passing.txt     NAME                what passes on Zonda; only grows
exceptions.txt  NAME | REASON       what passes there and not here, and why; also what ends with success
                                    here although it tests nothing

Classes: `classic` touches no HDF5 file; `internal` neither, but calls functions that are private to
the reference; `netcdf4` creates or opens an HDF5 file; `dap` belongs to the remote access tests.
"""
import os

from settings import EXCEPTIONS, PASSING, REFERENCE

CLASSES = ("classic", "internal", "netcdf4", "dap")


def _lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [x.strip() for x in f if x.strip() and not x.startswith("#")]


def _head(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [x for x in f if x.startswith("#")]


def reference():
    """{name: class}"""
    return {n: c for c, n in (x.split(None, 1) for x in _lines(REFERENCE))}


def passing():
    return _lines(PASSING)


def exceptions():
    """{name: reason}"""
    pairs = [x.split("|", 1) for x in _lines(EXCEPTIONS)]
    bad = [p[0] for p in pairs if len(p) != 2 or not p[1].strip()]
    if bad:
        raise SystemExit("exceptions.txt: no reason after | for: " + ", ".join(bad))
    return {n.strip(): why.strip() for n, why in pairs}


def classify(result):
    if result.name.startswith(("ncdap_test/", "dap4_test/")):
        return "dap"
    if result.hdf5:
        return "netcdf4"
    return "internal" if result.internals else "classic"


def write_reference(results, tests):
    """Records the passing tests of a baseline run. A `@classic` twin is listed only where it adds
    something: where the full program is no classic test that passes, or builds on one that is not."""
    old = reference()           # a test left out of this run (--large) keeps its line
    found = {n: classify(r) if r.status == "PASS" else old[n] for n, r in results.items()
             if r.status == "PASS" or r.status == "SKIP" and n in old}
    keep = {}
    for name, test in tests.items():
        if name not in found:
            continue
        if name.endswith("@classic"):
            full = [test.folder + "/" + t for t in [test.test] + test.needs]
            if found[name] != "classic" or all(found.get(n) == "classic" for n in full):
                continue
        keep[name] = found[name]
    with open(REFERENCE, "w") as f:
        f.write("# CLASS NAME: tests that pass on the distribution's library (run.py --baseline).\n")
        for c in CLASSES:
            f.writelines("%s %s\n" % (c, n) for n in keep if keep[n] == c)
    return keep


def add_passing(results, order):
    """Adds names of reference.txt that pass now and are no exceptions, keeps all others; returns the new ones."""
    head, old, ref = _head(PASSING), passing(), reference()
    left_out = set(old) | set(exceptions())
    new = [n for n in order if n in results and results[n].status == "PASS" and n in ref and n not in left_out]
    rank = {n: i for i, n in enumerate(order)}
    with open(PASSING, "w") as f:
        f.writelines(head)
        f.writelines(n + "\n" for n in sorted(old + new, key=lambda n: rank.get(n, len(rank))))
    return new


def report(every):
    """Prints where Zonda stands against the reference; returns the number of unexplained names."""
    ref, ok, why = reference(), set(passing()), exceptions()
    shown = CLASSES if every else ("classic", "internal")
    unexplained = []
    for c in shown:
        names = [n for n in ref if ref[n] == c]
        both = [n for n in names if n in ok]
        print("%-9s %d pass on the distribution's library, %d of them on Zonda" % (c, len(names), len(both)))
        for n in names:
            if n in ok:
                continue
            if n in why:
                print("  exception    %s: %s" % (n, why[n]))
            elif c == "internal":
                print("  exception    %s: calls private functions of the reference" % n)
            else:
                print("  unexplained  %s" % n)
                unexplained.append(n)
    for n in sorted(set(why) & ok):
        print("  note: %s passes, its line in exceptions.txt can go" % n)
    print("%d unexplained" % len(unexplained))
    return len(unexplained)
