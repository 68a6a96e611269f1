# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that know nothing of Zonda, under `zonda run`: what they say of a URL is what they say of the file."""
import hashlib
import re
import shutil

import places
import rig
from rig import Wrong

SECONDS = 120
CLASSIC = "files/tas_mod2_hist_rectilin_grid_2D.nc"
NETCDF4 = "files/netcdf4.nc"
# What each is asked about: NCO cannot have other grids than it knows, CDO wants a grid.
WHEEL = """
import netCDF4, numpy, sys, hashlib
with netCDF4.Dataset(sys.argv[1]) as file:
    print(sorted(file.dimensions), file.ncattrs())
    for name in sorted(file.variables):
        v = file.variables[name]
        print(name, v.dtype, v.shape, hashlib.sha256(numpy.ma.filled(v[...]).tobytes()).hexdigest())
"""
XARRAY = """
import sys, xarray
with xarray.open_dataset(sys.argv[1], engine="netcdf4", decode_times=False) as file:
    print(file)
    for name in sorted(file.variables):
        print(name, float(file[name].astype("f8").sum()))
"""


def run(bench, command, env=None):
    done = bench.run([rig.ZONDA, "run", "--", *command], env or {}, seconds=SECONDS)
    return done.returncode, done.stdout, done.stderr


def said_of(bench, command, name, env, out=None):
    """What a program says, and the file that it leaves as our ncdump has it; without the file's name."""
    if out and out.exists():
        out.unlink()
    status, said, errors = run(bench, command, env)
    if status:
        raise Wrong("%s ends with %s: %s" % (" ".join(map(str, command))[:300], status, errors.strip()[-300:]))
    text = rig.must([rig.BIN / "ncdump", "-n", "x", out], rig.environment(rig.LIBDIR)) if out else said
    text = re.sub(r'^.*(:history|:NCO|:CDO) = "[^"]*".*$|^.*Processed .*$|^Files: .*$', "", text, flags=re.M)
    return text.replace(str(name), "NAME")


def same(bench, program, way, name):
    """The command gets the target by `{}`, in each of its words, and the file to be made as `OUT`."""
    out = bench.scratch / "foreign.nc"
    makes = "OUT" in program

    def words(target):
        return [out if word == "OUT" else word.replace("{}", str(target)) for word in program]

    path, url = bench.path_alone(name), way.url(name)
    wanted = said_of(bench, words(path), path, way.environment(), out if makes else None)
    bench.servers.log()
    got = said_of(bench, words(url), url, way.environment(), out if makes else None)
    if "nginx" in bench.servers.running and way.before.startswith("http://127.0.0.1:%d" % bench.servers.port) and not bench.servers.log():
        raise Wrong("it asked the server nothing")
    shorten = lambda text: text.replace(url.split("#")[0], "NAME").replace(path.name, "NAME")  # noqa: E731
    if shorten(wanted) != shorten(got) or not wanted.strip():
        lines = [(a, b) for a, b in zip(shorten(wanted).splitlines(), shorten(got).splitlines()) if a != b]
        digests = [hashlib.sha256(text.encode()).hexdigest()[:8] for text in (wanted, got)]
        raise Wrong("by path and by URL it says %s; %s" % (lines[:2], digests))


def programs():
    """(name, command) of what is installed; None for what is not."""
    for name, tool, words in (
        ("ncdump", "ncdump", ["{}"]), ("nccopy", "nccopy", ["-k", "classic", "{}", "OUT"]), ("ncks", "ncks", ["-O", "-h", "{}", "OUT"]), ("ncks text", "ncks", ["--cdl", "-m", "{}"]),
        ("ncra", "ncra", ["-O", "-h", "{}", "OUT"]), ("cdo", "cdo", ["-s", "infon", "{}"]), ("cdo copy", "cdo", ["-s", "-O", "-f", "nc", "copy", "{}", "OUT"]), ("gdal", "gdalinfo", ["-checksum", 'NETCDF:"{}":tas']),
    ):  # fmt: skip
        found = rig.tool(tool)
        yield name, [found, *words] if found else None
    for name, script, modules in (("netCDF4-python", WHEEL, ("netCDF4",)), ("xarray", XARRAY, ("xarray", "netCDF4"))):
        python = rig.python(*modules)
        yield name, [python, "-c", script, "{}"] if python else None


def all_of(bench):
    made = bench.files / NETCDF4
    if rig.run([rig.BIN / "nccopy", "-k", "netCDF-4", "-d", "1", "-s", bench.files / CLASSIC, made], rig.environment(rig.LIBDIR)).returncode:
        shutil.copyfile(bench.files / CLASSIC, made)
    for name, command in programs():
        for way_name in ("http", "https login", "versitygw s3://"):
            for file in (CLASSIC, NETCDF4):
                case = "program %s, %s, %s" % (name, way_name, file)
                if not bench.options.wants(case) or way_name != "http" and (file == CLASSIC or name not in ("ncdump", "netCDF4-python")):
                    continue
                if command is None:
                    bench.counts.skip(case, "it is not installed")
                    continue
                if way_name.startswith("versitygw") and not bench.options.long and name != "ncdump":
                    continue
                bench.counts.attempt(case, by_way, bench, command, way_name, file)


def by_way(bench, command, way_name, file):
    way = bench.way(way_name)
    if way.upload:
        places.uploaded(bench.servers, bench.files, [file], [way])
    same(bench, command, way, file)
