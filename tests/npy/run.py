#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A folder of .npy files as a dataset: the format that is none of netCDF's own, through every door.

    tests/npy/run.py [--quick] [--only REGEX] [--parts LIST]

c        a C program: definitions, every kind of put and get, attributes, inquiries, errors; NumPy reads what it wrote
tools    zonda copy there and back, ncdump, nccopy, info, check, diff, of files with all types; NumPy on both sides
damaged  what the tools say of folders that are damaged, of other folders, and of targets that are there
python   the Python package

tests/rig/places.py has the settings; ZONDA_PYTHON_TESTS names a Python with the package, out/python by default.
"""
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
import rig  # noqa: E402
from rig import LIBDIR, ZONDA, Skip, Wrong  # noqa: E402

rig.needs("numpy")
import numpy  # noqa: E402

URL = "file://%s#mode=npy"
TYPES = {"byte": "|i1", "char": "|S1", "short": "<i2", "int": "<i4", "float": "<f4", "double": "<f8", "ubyte": "|u1",
         "ushort": "<u2", "uint": "<u4", "int64": "<i8", "uint64": "<u8"}  # fmt: skip


def zonda(*words, status=0):
    done = rig.run([ZONDA, *words], rig.environment(LIBDIR))
    if done.returncode != status:
        raise Wrong("zonda %s ends with %d: %s%s" % (" ".join(map(str, words)), done.returncode, done.stdout[-200:], done.stderr[-400:]))
    return done.stdout + done.stderr


def tool(name, *words):
    return rig.must([rig.BIN / name, *words], rig.environment(LIBDIR))


def same(a, b, what):
    if a != b:
        raise Wrong("%s: %r, and not %r" % (what, a, b))


def arrays(folder):
    """The variables of a folder by their names, as NumPy reads them, and their definitions."""
    definitions = json.loads((folder / "zonda-npy.json").read_text())
    found = {}
    for number, var in enumerate(definitions["variables"]):
        array = numpy.load(folder / ("%d.npy" % number), mmap_mode="r")
        lens = [definitions["dimensions"][dim]["length"] or definitions["records"] for dim in var["dimensions"]]
        same((array.dtype.str, list(array.shape)), (TYPES[var["type"]], lens), "type and shape of %s" % var["name"])
        found[var["name"]] = array
    same({path.name for path in folder.iterdir()}, {"zonda-npy.json"} | {"%d.npy" % n for n in range(len(found))}, "files")
    return found, definitions


def calls(program, folder, **settings):
    done = rig.run([program, URL % folder, folder], rig.environment(LIBDIR, **settings))
    if done.returncode or done.stdout != "ok\n":
        raise Wrong("%d: %s%s" % (done.returncode, done.stdout, done.stderr))
    found, definitions = arrays(folder)
    same(definitions["records"], 7, "records")
    same(found["v4"][:2].tolist(), [[1, 2, 3], [4, 5, 6]], "v4")
    same(found["v2"][:2].tolist(), [[b"a", b"b", b"c"], [b"d", b"e", b"f"]], "v2")
    same(found["v11"][:4].tolist(), [[1, 2, 3], [4, 5, 6]] + [[18446744073709551614] * 3] * 2, "v11")
    same(found["v10"][1].tolist() + found["v10"][3].tolist()[::2], [10, 5, 12, 11, 13], "v10")
    same((found["f"].tolist(), found["scalar"].tolist()), ([7, 8, 9], 0.5), "fixed ones")
    same(definitions["variables"][0]["attributes"][0]["values"], [0.1, 1e300, -2], "an attribute")
    zonda("check", folder)


# All types, a record dimension, text that is none, attributes that JSON has no words for.
CDL = """netcdf all {
dimensions: time = UNLIMITED ; x = 3 ; len = 4 ;
variables:
  double time(time) ; time:units = "days since 2000-01-01" ;
  float t(time, x) ; t:_FillValue = -1.f ; t:odd = 0.1f, NaNf, Infinityf, -Infinityf ;
  byte b(x) ; char name(x, len) ; short s(time, x) ; int i ; ubyte ub(x) ; ushort us(x) ; uint ui(x) ; int64 l(x) ; uint64 ul(x) ;
  char raw(len) ; raw:bytes = "\\377\\001x" ;
  :title = "h\303\251llo" ; :d = 0.1, 1e300, NaN ; :l = -9223372036854775808LL ; :ul = 18446744073709551615ULL ; :none = "" ;
data:
  time = 1.5, 2.5 ; t = 1, 2, _, 4, 5, NaN ; b = 1, -2, 3 ; name = "abc", "d", "efgh" ; s = 1, 2, 3, 4, 5, 6 ; i = 7 ;
  ub = 1, 2, 255 ; us = 1, 2, 65535 ; ui = 1, 2, 4294967295 ; l = -1, 0, 1 ; ul = 1, 2, 18446744073709551615 ; raw = "a\\377b" ;
}
"""


def make(scratch):
    (scratch / "all.cdl").write_bytes(CDL.encode("latin-1"))
    tool("ncgen", "-k", "cdf5", "-o", scratch / "all.nc", scratch / "all.cdl")
    return scratch / "all.nc"


def there_and_back(scratch, kind, there, back):
    """A file of some kind, its copy as a folder, and that as a file again: the tools find no difference."""
    source, folder, again = make(scratch), scratch / "folder", scratch / "again.nc"
    if kind != "cdf5":
        zonda("copy", "-k", kind, source, scratch / "own.nc")
        source = scratch / "own.nc"
    there(source, folder)
    found, _ = arrays(folder)
    numpy.testing.assert_array_equal(found["t"], numpy.array([[1, 2, -1], [4, 5, numpy.nan]], "f4"))
    same((found["ui"].tolist(), found["i"].tolist(), found["name"][2].tobytes()), ([1, 2, 4294967295], 7, b"efgh"), "values")
    same(found["raw"].tobytes(), b"a\xffb\0", "raw")
    zonda("diff", source, folder)
    # Only the form of the text differs between kinds, in types that both have.
    same(tool("ncdump", "-n", "x", folder), tool("ncdump", "-n", "x", scratch / "all.nc"), "text")
    same(tool("ncdump", "-n", "x", URL % folder), tool("ncdump", "-n", "x", folder), "text by the URL")
    same(tool("ncdump", "-k", folder), "npy\n", "kind")
    back(folder, again, kind)
    zonda("diff", source, again)
    zonda("diff", folder, again)


def by_url(source, folder):
    zonda("copy", source, URL % folder)


def by_kind(source, folder):
    zonda("copy", "-k", "npy", source, folder)


def by_nccopy(source, folder):
    tool("nccopy", source, URL % folder)


def back_by_copy(folder, target, kind):
    zonda("copy", "-k", kind, folder, target)


def back_by_nccopy(folder, target, kind):
    tool("nccopy", "-k", {"netcdf4": "netCDF-4"}.get(kind, kind), folder, target)


def told(scratch):
    source, folder = make(scratch), scratch / "folder"
    by_url(source, folder)
    facts = json.loads(zonda("info", "--json", folder))
    same((facts["format"], len(facts["variables"]), facts["global_attributes"]), ("npy", 12, 5), "info")
    zonda("info", folder)
    same(zonda("check", "--json", folder).count("damage"), 0, "check")
    same(zonda("dump", folder), zonda("dump", URL % folder), "dump")
    # What NumPy writes into an array is what the tools read.
    array = numpy.load(folder / "5.npy", mmap_mode="r+")
    array[...] = 77
    array.flush()
    if " i = 77 ;" not in tool("ncdump", folder):
        raise Wrong("NumPy wrote what ncdump does not read")
    # One that NumPy made anew has a header of another length.
    numpy.save(folder / "1.npy", numpy.arange(6, dtype="<f4").reshape(2, 3))
    if "3, 4, 5 ;" not in tool("ncdump", "-v", "t", folder):
        raise Wrong("NumPy saved what ncdump does not read")
    zonda("diff", source, folder, status=1)
    # A second copy beside the first one, which stays unless it is to be replaced.
    zonda("copy", source, URL % folder, status=1)
    zonda("copy", "-f", source, URL % folder)
    zonda("diff", source, folder)
    same(sorted(path.name for path in scratch.iterdir()), ["all.cdl", "all.nc", "folder"], "what is left")
    zonda("copy", folder, scratch / "second")
    zonda("diff", folder, scratch / "second")


def damaged(scratch):
    source, folder = make(scratch), scratch / "folder"
    by_url(source, folder)
    definitions, array = folder / "zonda-npy.json", folder / "1.npy"
    for path, how, words in [
        (definitions, lambda whole: whole[:100], "zonda-npy.json: definitions at byte 99"),
        (array, lambda whole: whole[:-1], "1.npy: values at byte 151"),
        (array, lambda whole: b"\x93NUMPY\2" + whole[7:], "1.npy: header at byte 0"),
        (array, lambda whole: whole.replace(b"<f4", b">f4"), "1.npy: header at byte 10"),
        (array, lambda whole: whole.replace(b"(2, 3)", b"(3, 2)"), "1.npy: header at byte 10"),
    ]:
        whole = path.read_bytes()
        path.write_bytes(how(whole))
        said = zonda("copy", folder, scratch / "x.nc", status=1) + zonda("check", folder, status=1)
        if words not in said or "damaged" not in said:
            raise Wrong("%s does not say %r" % (said, words))
        if (scratch / "x.nc").exists():
            raise Wrong("something is left of the copy")
        path.write_bytes(whole)
    zonda("check", folder)
    # What is no dataset of this format.
    (scratch / "other").mkdir()
    (scratch / "other" / "mine").write_text("mine")
    (scratch / "file").write_text("mine")
    for other in ("other", "file"):
        zonda("copy", source, URL % (scratch / other), status=1)
        zonda("copy", "-f", source, URL % (scratch / other), status=1)
        zonda("check", scratch / other, status=2 if other == "other" else 2)
    same(((scratch / "other" / "mine").read_text(), (scratch / "file").read_text()), ("mine", "mine"), "what was there")
    # A type that the format has not.
    zonda("copy", "-k", "netcdf4", source, scratch / "four.nc")
    (scratch / "s.cdl").write_text("netcdf s { variables: string s ; data: s = \"a\" ; }")
    tool("ncgen", "-k", "netCDF-4", "-o", scratch / "s.nc", scratch / "s.cdl")
    said = zonda("copy", scratch / "s.nc", URL % (scratch / "s"), status=1)
    if "variable /s of type string" not in said or (scratch / "s").exists():
        raise Wrong(said)


PYTHON = """
import sys
import numpy
import zonda
folder, url = sys.argv[1:]
try:
    made = zonda.create(url)
except (ValueError, OSError) as error:
    sys.exit("old: %s" % error)
if made.format != "npy":
    sys.exit("old")
with made as ds:
    ds.create_dimension("time", None)
    t = ds.create_variable("t", "f4", ("time", "x"), data=numpy.arange(6, dtype="f4").reshape(2, 3))
    t.attrs["units"] = "K"
with zonda.open(folder, "r+") as ds:
    assert ds.format == "npy", ds.format
    ds["t"][2:4, ::2] = [[7, 8], [9, 10]]
with zonda.open(url) as ds:
    assert ds["t"][:].shape == (4, 3)
    assert ds["t"].attrs["units"] == "K"
    numpy.testing.assert_array_equal(ds["t"][::-1, 2], [10, 8, 5, 2])
with zonda.create(folder + "2", format="npy") as ds:
    ds.create_variable("x", data=[1, 2], dims="n")
print("ok")
"""


def in_python(scratch):
    interpreter = os.environ.get("ZONDA_PYTHON_TESTS") or rig.ROOT / "out" / "python" / "bin" / "python"
    env = rig.environment()
    env.update({name: value for name, value in os.environ.items() if name == "PYTHONPATH"})
    if not Path(interpreter).exists() or rig.run([interpreter, "-c", "import zonda, numpy"], env).returncode:
        raise Skip("no Python with the package (python/tests/run.sh makes one)")
    folder = scratch / "folder"
    done = rig.run([interpreter, "-c", PYTHON, folder, URL % folder], env)
    if done.stderr.startswith("old"):
        raise Skip("the package is of before this format (python/tests/run.sh makes it anew)")
    if done.returncode or done.stdout != "ok\n":
        raise Wrong(done.stdout + done.stderr)
    found, _ = arrays(folder)
    numpy.testing.assert_array_equal(found["t"][:2], numpy.arange(6).reshape(2, 3))
    same(found["t"][2].tolist()[::2], [7, 8], "what Python wrote")


def main():
    parts = {"c": rig.QUICK, "tools": rig.QUICK, "damaged": rig.QUICK, "python": rig.QUICK}
    options, counts = rig.arguments(rig.parser(__doc__, parts=parts)), rig.Counts()
    cases = []
    chosen = options.chosen()
    with rig.scratch() as scratch:
        if "c" in chosen:
            program = rig.compile_c(scratch / "calls", HERE / "calls.c")
            cases += [("c", calls, program, {}), ("c, unbuffered", calls, program, {"ZONDA_IO": "file"}),
                      ("c, write-behind", calls, program, {"ZONDA_ASYNC": "on"})]  # fmt: skip
        for case in cases:
            name, run, program, settings = case
            folder = scratch / name.replace(", ", "-")
            if options.wants(name):
                counts.attempt(name, lambda: run(program, folder, **settings))
        ways = [("cdf5 by url", "cdf5", by_url, back_by_copy), ("cdf5 by kind", "cdf5", by_kind, back_by_nccopy),
                ("netcdf4 by url", "netcdf4", by_url, back_by_copy), ("cdf5 by nccopy", "cdf5", by_nccopy, back_by_nccopy)]  # fmt: skip
        rest = [("tools", name, lambda at, way=way: there_and_back(at, *way)) for name, *way in ways]
        rest += [("tools", "told", told), ("damaged", "damaged", damaged), ("python", "python", in_python)]
        for part, name, run in rest:
            if part in chosen and options.wants(name):
                own = scratch / name.replace(" ", "-")
                own.mkdir()
                counts.attempt(name, run, own)
    return counts


if __name__ == "__main__":
    rig.main(main)
