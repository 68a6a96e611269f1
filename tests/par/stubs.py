# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs and libraries that were built against Debian's libnetcdf_mpi and libnetcdf_pnetcdf, on the library under those names.

Their symbols have versions (nc_open@NETCDF_MPI_3.6.1). Each must be bound to libnetcdf.so.19, without a word of the loader.
"""
import re
from pathlib import Path

import rig

HERE = Path(__file__).resolve().parent


def bound(text):
    """The library of each symbol of netCDF that the loader bound, as it says with LD_DEBUG=bindings."""
    found = re.findall(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(nc\w+)' \[(NETCDF_\w+_[\d.]+)\]", text)
    return {(Path(who).name, name): to for who, to, name, _ in found}


def on_ours(program, words, scratch):
    """Runs a program on the library; what it says. All that it takes of netCDF must be of libnetcdf.so.19, and it must say nothing else."""
    done = rig.run([program, *words], rig.environment(rig.LIBDIR))
    if done.returncode or done.stderr:
        raise rig.Wrong("ends with %d: %s" % (done.returncode, (done.stderr + done.stdout).strip()[-400:]))
    trace = scratch / "bindings"
    for old in scratch.glob("bindings*"):
        old.unlink()
    rig.must([program, *words], {**rig.environment(rig.LIBDIR), "LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": str(trace)})
    places = bound("".join(file.read_text() for file in scratch.glob("bindings*")))
    if not places:
        raise rig.Wrong("nothing was bound that has a version of Debian's")
    for (who, name), place in sorted(places.items()):
        if not rig.LIBRARY.samefile(place):
            raise rig.Wrong("%s of %s is bound to %s" % (name, who, place))
    return done.stdout


def program_of(flavour, debian, scratch):
    program = scratch / ("stub-" + flavour)
    flags = ["-I%s" % (debian / "netcdf" / flavour / "include"), "-L%s" % debian, "-Wl,--allow-shlib-undefined"]
    rig.compile_c(program, HERE / "stub.c", link=None, flags=flags, libraries=["-lnetcdf_" + flavour])
    said = on_ours(program, [scratch / "stub.nc"], scratch)
    if "Zonda" not in said:
        raise rig.Wrong("it is not Zonda that says %s" % said.strip())


def exodus(debian, scratch):
    """Debian's exodusII library writes the same mesh on both."""
    library = sorted(debian.glob("libexoIIv2c.so.5"))
    if not library:
        raise rig.Skip("no libexoIIv2c.so.5 (libexodusii5)")
    if not rig.tool("ncdump"):
        raise rig.Skip("no ncdump of Debian")
    program = rig.compile_c(scratch / "exodus", HERE / "exodus.c", link=None, libraries=["-ldl"])
    files = [scratch / name / "square.exo" for name in ("exodus-ours", "exodus-debian")]
    for file in files:
        file.parent.mkdir()
    on_ours(program, [library[0], files[0]], scratch)
    rig.must([program, library[0], files[1]], rig.environment(debian))
    # Zonda's has room for a longer header.
    texts = [rig.must([rig.tool("ncdump"), file], rig.environment(rig.reference())) for file in files]
    if texts[0] != texts[1]:
        raise rig.Wrong("the files are not the same")


def cases():
    """Name, test and arguments of each case; a scratch folder is put after these."""
    debian = rig.parallel_reference()
    if not debian:
        raise rig.Skip("Debian's parallel netCDF is not there; scripts/setup.sh --par gets it")
    yield from (("a program for libnetcdf_%s" % flavour, program_of, flavour, debian) for flavour in ("mpi", "pnetcdf"))
    yield "exodusII", exodus, debian
