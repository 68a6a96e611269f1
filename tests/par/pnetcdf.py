# SPDX-License-Identifier: MIT OR Apache-2.0
"""PnetCDF's own tests of netCDF-4 files, on the library and on Debian's libnetcdf_mpi.

PnetCDF writes classic files by itself and gives netCDF-4 files to libnetcdf. Its sources come from Debian as those of upstream.py do, and are
built for Debian's Open MPI in out/par/pnetcdf, over dist/lib/netcdf/mpi; nothing is installed. Programs are linked with libpnetcdf.a
and libnetcdf.so.19, so the same ones run on Debian's library under that name. Each must end without an error, and the netCDF-4 files that both
leave must have the same text.
"""
import glob
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import launch
import rig
import upstream

HERE = Path(__file__).resolve().parent
SECONDS = 600
TOOLS = ("autoreconf", "libtoolize", "m4", "make", "mpicc.openmpi")
# Its netcdf_meta.h says that the library has PnetCDF's files, and PnetCDF refuses to be built over a netCDF that has PnetCDF in it.
# Fortran and C++ would take most of the time of the build, and call the same functions of libnetcdf.
CONFIGURE = ["--enable-static", "--disable-shared", "--disable-cxx", "--disable-fortran", "--with-netcdf4=%s" % (rig.LIBDIR / "netcdf" / "mpi"),
             "CPPFLAGS=-DNC_HAS_PNETCDF=0", "MPICC=mpicc.openmpi", "CFLAGS=-O0 -w"]  # fmt: skip


@dataclass(frozen=True)
class Test:
    """A program of a folder, with so many ranks. FILE in its words is a file that it makes, FOLDER a folder for several."""

    folder: str
    name: str
    ranks: int
    words: tuple = ("FILE",)
    title: str = ""

    def __str__(self):
        return "%s/%s" % (self.folder, self.title or self.name)


OF_NC4 = """simple_xy put_get_all_kinds interoperability_rd interoperability_wr noclobber tst_zero_req notsupport tst_2_rec_dims tst_get_put_size
pres_temp_4D rd_compressed tst_rec_vars""".split()
# Those of the programs there that make netCDF-4 files, besides others.
OF_TESTCASES = """ncmpi_vars_null_stride collective_error test_varm noclobber record inq_num_vars modes inq_recsize check_striping add_var check_type
test_erange scalar null_args tst_vars_fill tst_def_var_fill test_fillvalue error_precedence tst_free_comm put_all_kinds redef1""".split()
# In the examples' words 3 is netCDF-4 and 4 its classic model. collective_write gives an Info that it never set to MPI.
OF_EXAMPLES = "ghost_cell put_vara time_var transpose transpose2D".split()
TESTS = [
    *(Test("test/nc4", name, ranks, title="%s, %d ranks" % (name, ranks)) for name in OF_NC4 for ranks in (1, 4)),
    *(Test("test/testcases", name, 4) for name in OF_TESTCASES),
    *(Test("examples/C", name, 4, ("-q", "-k", kind, "FILE"), "%s, format %s" % (name, kind)) for name in OF_EXAMPLES for kind in "34"),
    Test("test/C", "pres_temp_4D_wr", 4, ("FILE", "4")), Test("test/nc_test", "nc_test", 1, ("-4", "-d", "FOLDER")),
]  # fmt: skip
# Whose files are not compared, and why.
NOT_COMPARED = {
    "noclobber": "it makes no file",
    "tst_def_var_fill": "one of its variables has no fill values",
    "nc_test": "it takes minutes on Debian's library",
}


def sources():
    """The folder of the sources, with a configure."""
    top = rig.out("par", "pnetcdf")
    found = glob.glob(str(top / "pnetcdf-*" / "configure.ac"))
    if not found:
        sys.path.insert(1, str(HERE.parent / "conformance"))
        import settings  # noqa: E402
        import source  # noqa: E402

        place = settings.Settings("par", "", "", str(rig.out("conformance")), 1, 1, False, False)
        with rig.scratch() as scratch:
            rig.must(["tar", "xf", source.download(place, "pnetcdf", ""), "-C", scratch])
            for unpacked in scratch.glob("pnetcdf-*"):
                shutil.move(unpacked, top)
        found = glob.glob(str(top / "pnetcdf-*" / "configure.ac"))
    folder = Path(found[0]).parent
    if not (folder / "configure").exists():
        stepped("autoreconf", ["autoreconf", "-i"], folder)
    return folder


def stepped(name, words, folder):
    """Makes a step of the build, whose words go to a log."""
    log = rig.out("par", "pnetcdf") / (name + ".log")
    log.write_text("")
    if launch.ends_with(words, launch.environment(None, rig.LIBDIR), folder, 3600, log) != 0:
        raise rig.Wrong("%s of PnetCDF fails: %s (%s)" % (name, log.read_text(errors="replace").strip()[-400:], log))


def built():
    """The folder in which PnetCDF and the programs are made; anew where the headers are others."""
    missing = [tool for tool in TOOLS if not rig.tool(tool)]
    if missing:
        raise rig.Skip("no %s (scripts/setup.sh --par)" % ", ".join(missing))
    top, build = sources(), rig.out("par", "pnetcdf", "build")
    headers = rig.LIBDIR / "netcdf" / "mpi" / "include"
    stamp = "\n".join([*CONFIGURE, *(file.read_text() for file in sorted(headers.glob("*.h")))])
    mark = build / "configured"
    if not (mark.exists() and mark.read_text() == stamp):
        build = rig.out("par", "pnetcdf", "build", anew=True)
        stepped("configure", [top / "configure", *CONFIGURE], build)
        mark.write_text(stamp)
    for folder in ("include", "dispatchers", "drivers", "libs"):
        stepped("make-" + folder, ["make", "-j2", "-C", "src/" + folder], build)
    stepped("make-common", ["make", "-C", "test/common", "tests-local"], build)
    for folder in sorted({test.folder for test in TESTS}):
        programs = sorted({test.name for test in TESTS if test.folder == folder})
        stepped("make-" + folder.replace("/", "-"), ["make", "-j2", "-C", folder, "all", *programs], build)
    return build


def ended(mpi, build, test, library, kind):
    """Runs a test with a library; what is wrong with it, and its folder."""
    folder = rig.out("par", "pnetcdf", "runs", re.sub(r"\W+", "-", str(test)), kind, anew=True)
    words = [{"FILE": folder / "made.nc", "FOLDER": folder}.get(word, word) for word in test.words]
    # It looks for its files by this name where it is started.
    env = launch.environment(mpi, library, srcdir=str(build / test.folder), ZONDA_PAR_TIMEOUT="120")
    log = folder / "log"
    status = launch.ends_with(launch.command(mpi, test.ranks, [build / test.folder / test.name, *words]), env, folder, SECONDS, log)
    said = log.read_text(errors="replace")
    if status == 0 and not re.search(r"^Error|fail with|FAILURE", said, re.M):
        return None, folder
    return "%s: %s" % ("does not end" if status is None else "ends with %d" % status, said.strip()[:500]), folder


def one(mpi, build, test, scratch):
    """Runs a test on both libraries."""
    wrong, ours = ended(mpi, build, test, rig.LIBDIR, "zonda")
    reference = debian(scratch)
    if reference and (wrong or test.name not in NOT_COMPARED):
        theirs, beside = ended(mpi, build, test, reference, "debian")
        if theirs and wrong:
            raise rig.Skip("it fails on Debian's library, too: %s" % theirs[:200])
        if not (theirs or wrong):
            wrong = upstream.compare(ours, beside)
    if wrong:
        raise rig.Wrong(wrong)
    shutil.rmtree(ours.parent, ignore_errors=True)


def debian(scratch):
    """A folder in which Debian's libnetcdf_mpi has the usual name; None where there is none. The other one brings a PnetCDF of its own."""
    there = rig.parallel_reference()
    folder = scratch / "debian-mpi"
    if there and not folder.exists():
        folder.mkdir()
        (folder / rig.SONAME).symlink_to(there / rig.PARALLEL[0])
        for file in there.glob("libhdf5*.so*"):
            os.symlink(file, folder / file.name)
    return there and folder


def cases(mpi, options):
    """Names, tests and their arguments."""
    if mpi.name != "openmpi":
        return
    build = built()
    for test in TESTS:
        yield "pnetcdf, %s" % test, one, mpi, build, test, options.scratch
