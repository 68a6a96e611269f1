# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parallel test programs of netCDF-C and netCDF-Fortran, with the ranks that their own scripts give them.

They come from the source packages of Debian, as those of tests/conformance do, into out/par/upstream. Each program is compiled once for
each MPI, with its compilers, the headers of dist/lib/netcdf/mpi and Debian's Fortran library, and linked with libnetcdf.so.19. With Open MPI the
same program runs on Debian's parallel build, too, under that name: what fails there is skipped, and netCDF-4 and classic files that both
runs leave must have the same text. Programs that are known to fail are in upstream.txt.
"""
import glob
import hashlib
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import launch
import rig

HERE = Path(__file__).resolve().parent
EXCEPTIONS = HERE / "upstream.txt"
SECONDS = 300
FORTRAN = ("nf03_test4", "nf_test4", "examples/F90")
# What configure would find out here; the programs ask for more than they use.
CONFIG = """USE_NETCDF4 USE_HDF5 USE_PARALLEL USE_PARALLEL4 HDF5_PARALLEL USE_PNETCDF ENABLE_CDF5 HAVE_META_H HAVE_UNISTD_H HAVE_SYS_STAT_H
HAVE_SYS_TYPES_H HAVE_SYS_PARAM_H HAVE_TIME_H HAVE_STDINT_H HAVE_STDIO_H HAVE_STDLIB_H HAVE_STRING_H HAVE_FCNTL_H HAVE_STRDUP HAVE_STRLCAT
HAVE_USHORT HAVE_UINT HAVE_UINT64_T HAVE_SSIZE_T HAVE_PTRDIFF_T HAVE_MODE_T HDF5_SUPPORTS_PAR_FILTERS""".split()
SIZES = "TEMP_LARGE \".\"|SIZEOF_SIZE_T 8|SIZEOF_OFF_T 8|SIZEOF_LONG 8|SIZEOF_INT 4|SIZEOF_SHORT 2|SIZEOF_FLOAT 4|SIZEOF_DOUBLE 8|SIZEOF_LONG_LONG 8".split("|")
# Debian's library has these; tests ask whether they come back.
CACHE = "CHUNK_CACHE_SIZE 16777216|CHUNK_CACHE_SIZE_NCZARR 4194304|CHUNK_CACHE_NELEMS 4133|CHUNK_CACHE_PREEMPTION 0.75|DEFAULT_CHUNK_SIZE 16777216".split("|")


@dataclass(frozen=True)
class Step:
    """A program with so many ranks, 0 without a launcher."""

    program: str
    ranks: int
    words: tuple = ()


@dataclass(frozen=True)
class Test:
    """Steps in one folder; `folder` is that of the sources."""

    name: str
    folder: str
    steps: tuple
    mark: str = rig.LONG
    needs: tuple = ()
    sources: dict = field(default_factory=dict, hash=False)


def of(folder, program, *ranks, mark=rig.LONG, **more):
    return Test(program, folder, tuple(Step(program, count) for count in ranks), mark, **more)


# Not among them: tst_mpi_parallel and h5_test, which have no netCDF in them. Of nc_perf only bm_file and tst_compress_par know MPI.
def benchmark():
    """nc_perf/run_par_bm_test.sh: files of one to three dimensions, copied by ranks."""
    steps = [Step("tst_create_files", 0)]
    for kind in ("floats", "ints", "shorts"):
        for rank, chunks in enumerate(("100000", "316:316", "46:46:46"), 1):
            for count in (1, 4, 16):
                # The script takes copies of these, which another one makes.
                source, target = ("%s%s2_%dD%s.nc" % (begins, kind, rank, ends) for begins, ends in (("tst_", ""), ("p_", "_3")))
                steps.append(Step("bm_file", count, ("-p", "-d", "-s", count, "-f", 4, "-o", target, "-c", "0:-1:0:" + chunks, source)))
    return Test("bm_file", "nc_perf", tuple(steps))


# Texts of larger files take minutes.
COMPARED_BYTES = 4 << 20
# Whose files are not compared.
NOT_COMPARED = {
    "nc_test": "PnetCDF stores fill values where numbers do not fit, the library what netCDF-C stores in files of one process",
    "tst_compress_par": "what Debian's library leaves by szip its own ncdump cannot read (HDF error), and what the library leaves it reads",
    "f90tst_parallel_compressed": "its text is hundreds of megabytes",
    "tst_simplerw_coll_r": "numbers are converted to types that cannot have them: on one library, too, they differ from run to run",
}
# They compare memory that they never set, and find it different where it is no number: malloc gives them zeros.
UNSET = {"f90tst_parallel_compressed"}
NC_TEST = {"nc_test": ("nc_test.c", "error.c", "test_get.c", "test_put.c", "test_read.c", "test_write.c", "util.c")}
TESTS = [
    of("nc_test4", "tst_mode", 1, mark=rig.QUICK), of("nc_test4", "tst_parallel", 4, mark=rig.QUICK), of("nc_test4", "tst_parallel3", 16),
    of("nc_test4", "tst_parallel4", 1, 2, 4, 8), of("nc_test4", "tst_parallel5", 4), of("nc_test4", "tst_nc4perf", 4),
    of("nc_test4", "tst_simplerw_coll_r", 1, 2, 4), of("nc_test4", "tst_parallel_zlib", 4), of("nc_test4", "tst_parallel_compress", 1, 4),
    of("nc_test4", "tst_quantize_par", 4), of("nc_test4", "tst_parallel6", 4, mark=rig.FULL),
    Test("tst_pnetcdf", "nc_test", (Step("tst_pnetcdf", 0), Step("tst_addvar", 0, ("tst_pnetcdf.nc",))), needs=("pnetcdf",)),
    of("nc_test", "tst_parallel2", 2, needs=("pnetcdf.h",)), of("nc_test", "t_nc", 1), of("nc_test", "tst_atts3", 1), of("nc_test", "tst_nofill", 1),
    of("nc_test", "nc_test", 1, sources=NC_TEST, needs=("pnetcdf.h",)), of("nc_test", "tst_default_format_pnetcdf", 1), of("nc_test", "tst_small", 1),
    of("nc_test", "tst_formatx_pnetcdf", 1), of("nc_test", "tst_cdf5format", 1), of("examples/C", "parallel_vara", 4),
    benchmark(), of("nc_perf", "tst_compress_par", 4),
    of("nf03_test4", "f90tst_parallel", 4), of("nf03_test4", "f90tst_parallel2", 4), of("nf03_test4", "f90tst_parallel3", 4),
    of("nf03_test4", "f90tst_nc4_par", 8), of("nf03_test4", "f90tst_parallel_fill", 4), of("nf03_test4", "f90tst_parallel_compressed", 4),
    of("nf_test4", "ftst_parallel", 4), of("nf_test4", "ftst_parallel_nasa", 4), of("nf_test4", "f03tst_parallel", 4),
    Test("simple_xy_par", "examples/F90", (Step("simple_xy_par_wr", 4), Step("simple_xy_par_rd", 4), Step("simple_xy_par_wr2", 4))),
]  # fmt: skip


def exceptions():
    """Name to reason."""
    rows = (line.partition("|") for line in EXCEPTIONS.read_text().splitlines() if line and not line.startswith("#"))
    return {name.strip(): reason.strip() for name, _, reason in rows}


# ---- Sources

def sources(may_fetch):
    """The folders of both packages' sources, netCDF-C and netCDF-Fortran; the latter may be None. Fetched are they where that is allowed;
    what tests/conformance has fetched is taken in any case."""
    sys.path.insert(1, str(HERE.parent / "conformance"))
    import settings  # noqa: E402
    import source  # noqa: E402

    top, found = rig.out("par", "upstream"), []
    place = settings.Settings("par", "", "", str(rig.out("conformance")), 1, 1, False, False)
    for package, version, folder in (("netcdf", settings.UPSTREAM, "netcdf-c-*"), ("netcdf-fortran", "", "netcdf-fortran-*")):
        if not glob.glob(str(top / folder)) and (may_fetch or glob.glob(place.path("tarballs", package + "_*.orig.tar.*"))):
            with rig.scratch() as scratch:
                rig.must(["tar", "xf", source.download(place, package, version), "-C", scratch])
                # As a whole or not at all.
                for unpacked in scratch.glob(folder):
                    shutil.move(unpacked, top)
        found.append(next(map(Path, glob.glob(str(top / folder))), None))
    if not found[0]:
        raise rig.Skip("no sources of netCDF-C; make par gets them")
    return tuple(found)


def prepared(c_top, fortran_top):
    """A folder with what configure and make would make of the sources."""
    folder = rig.out("par", "upstream", "made")
    lines = ["#define %s 1" % name for name in CONFIG] + ["#define %s" % row for row in SIZES + CACHE]
    # nc_tests.h includes private headers, which want to know their own build.
    (folder / "config.h").write_text("#ifndef CONFIG_H\n#define CONFIG_H\n#include <stdint.h>\n%s\n#include <ncconfigure.h>\n#endif\n" % "\n".join(lines))
    # What it asks of the cache of libhdf5 is asked of a function inside the reference.
    text = (c_top / "nc_test4" / "tst_parallel5.c").read_text(errors="replace")
    text = re.sub(r"if \(nc4_hdf5_get_chunk_cache\([^;]*;\s*(?:/\*.*?\*/\s*)?if \(size [^;]*;", ";", text, flags=re.S)
    (folder / "tst_parallel5.c").write_text(text)
    # Of MPI 1, and no longer in MPI 3.
    text = (c_top / "nc_perf" / "bm_file.c").read_text(errors="replace")
    (folder / "bm_file.c").write_text(text.replace("MPI_Errhandler_set(", "MPI_Comm_set_errhandler("))
    # It writes gigabytes to time filters, or little where it is told to.
    text = (c_top / "nc_perf" / "tst_compress_par.c").read_text(errors="replace")
    (folder / "tst_compress_par.c").write_text(text.replace("/* #define USE_SMALL 1 */", "#define USE_SMALL 1"))
    if not fortran_top:
        return folder
    # As its Makefile makes the form of Fortran 2003 of it.
    text = (fortran_top / "nf_test4" / "ftst_parallel.F").read_text(errors="replace")
    for old, new in (("implicit none", "USE netcdf4_f03"), ("include 'netcdf.inc'", "implicit none"), ("ftst_parallel.nc", "f03tst_parallel.nc")):
        text = text.replace(old, new)
    (folder / "f03tst_parallel.F").write_text(text)
    return folder


class Upstream:
    """Programs of one MPI."""

    def __init__(self, mpi, may_fetch):
        self.mpi = mpi
        self.c, self.fortran = sources(may_fetch)
        self.made = prepared(self.c, self.fortran)
        self.debian = rig.parallel_reference() if mpi.name == "openmpi" else None
        self.bin = rig.out("par", "upstream", "bin", mpi.name)
        self.headers = rig.LIBDIR / "netcdf" / "mpi" / "include"
        if not self.headers.exists():
            raise rig.Setup("no %s; run make build" % self.headers)

    def program(self, test, name):
        """Compiles a program, if it was not, or if it or what it is made with changed."""
        target = self.bin / name
        words = self._fortran(test, name) if test.folder in FORTRAN else self._c(test, name)
        words += ["-Wl,--allow-shlib-undefined", "-L", rig.LIBDIR, "-l:" + rig.SONAME, "-lm", "-o", target]
        stamp = hashlib.sha256("\n".join(map(str, words)).encode())
        for header in sorted([*self.headers.glob("*.h"), *self.made.glob("*.*")]):
            stamp.update(header.read_bytes())
        mark = target.with_suffix(".made")
        if not (target.exists() and mark.exists() and mark.read_text() == stamp.hexdigest()):
            done = rig.run(words, launch.environment(self.mpi), seconds=1200, cwd=self.bin)
            if done.returncode:
                raise rig.Wrong("%s does not compile: %s" % (name, done.stderr.strip()[:600]))
            mark.write_text(stamp.hexdigest())
        return target

    def _source(self, top, folder, name):
        for place in (self.made, top / folder):
            for end in (".c", ".F90", ".f90", ".F", ".f"):
                if (place / (name + end)).exists():
                    return place / (name + end)
        raise rig.Setup("no source of %s" % name)

    def _c(self, test, name):
        files = [self.c / test.folder / file for file in test.sources.get(name, ())] or [self._source(self.c, test.folder, name)]
        words = [rig.tool(self.mpi.compiler), "-std=gnu99", "-O1", "-w", "-fno-strict-aliasing", "-DHAVE_CONFIG_H", "-D_GNU_SOURCE", "-DTOPSRCDIR=" + str(self.c)]
        words += ["-I%s" % folder for folder in (self.headers, self.made, self.c / "include", self.c / test.folder)]
        words += files
        if test.needs:
            # Its header knows no MPI, and the library is Debian's for Open MPI.
            words += ["-isystem", rig.parallel_reference().parents[1] / "include"]
        if "pnetcdf" in test.needs:
            words += ["-L", self.debian, "-lpnetcdf"]
        # Of libhdf5, one header that says which release it is.
        return words + ["-isystem", "/usr/include/hdf5/serial", HERE.parent / "conformance" / "support" / "standins.c", HERE / "standins.c"]

    def _fortran(self, test, name):
        source = self._source(self.fortran, test.folder, name)
        words = [rig.tool(self.mpi.fortran), "-O1", "-w", "-fallow-argument-mismatch", "-I/usr/include", "-I%s" % (self.fortran / test.folder)]
        return [*words, source, "-lnetcdff"]

    def run(self, test, library, kind):
        """Runs a test with a library; what is wrong with it, and its folder."""
        folder = rig.out("par", "upstream", "runs", self.mpi.name, test.name, kind, anew=True)
        zeros = {"MALLOC_PERTURB_": "255"} if test.name in UNSET else {}
        env = launch.environment(self.mpi, library, HDF5_USE_FILE_LOCKING=None, **zeros)
        for step in test.steps:
            # The scripts' own programs of libtool change nothing of how they are called.
            words = [self.program(test, step.program), *step.words]
            words = launch.command(self.mpi, step.ranks, words) if step.ranks else words
            status = launch.ends_with(words, env, folder, SECONDS, folder / "log")
            if status != 0:
                said = (folder / "log").read_text(errors="replace").strip()[-500:]
                how = "does not end" if status is None else "ends with %d" % status
                return "%s with %d ranks %s: %s" % (step.program, step.ranks, how, said), folder
        return None, folder

    def reference(self, scratch):
        """A folder in which Debian's parallel build has the usual name, None where there is none for this MPI."""
        if not self.debian:
            return None
        folder = scratch / "debian"
        if not folder.exists():
            folder.mkdir()
            for file in self.debian.glob("lib*.so*"):
                (folder / file.name).symlink_to(file)
            (folder / rig.SONAME).symlink_to(self.debian / rig.PARALLEL[1])
        return folder


def dump(file):
    """The text of a file by Debian's ncdump, without its name and when it was made."""
    done = rig.run([rig.tool("ncdump"), file], rig.environment(rig.reference()))
    return re.sub(r"^\s*:history = .*", "", done.stdout.partition("\n")[2], flags=re.M) if done.returncode == 0 else "no file of netCDF: " + done.stderr.strip()[-200:]


def compare(ours, theirs):
    """What differs between the files of two runs."""
    if not rig.tool("ncdump"):
        return None
    names = [{file.name for file in folder.glob("*.nc")} for folder in (ours, theirs)]
    if ours.parent.name in NOT_COMPARED:
        return None
    if names[0] != names[1]:
        return "leaves %s, and Debian's library %s" % (", ".join(sorted(names[0])), ", ".join(sorted(names[1])))
    for name in sorted(names[0]):
        if max((folder / name).stat().st_size for folder in (ours, theirs)) > COMPARED_BYTES:
            continue
        if dump(ours / name) != dump(theirs / name):
            return "%s differs: %s and %s" % (name, ours / name, theirs / name)
    return None


def one(upstream, test, scratch, long):
    """Runs a test on the library, and on Debian's where that says more."""
    if "pnetcdf" in test.needs and not upstream.debian:
        raise rig.Skip("no PnetCDF for this MPI")
    if test.needs and not rig.parallel_reference():
        raise rig.Skip("Debian's parallel netCDF is not there; scripts/setup.sh --par gets it")
    if test.folder in FORTRAN and not upstream.fortran:
        raise rig.Skip("no sources of netCDF-Fortran; make par gets them")
    if test.folder in FORTRAN and not rig.tool(upstream.mpi.fortran):
        raise rig.Skip("no %s" % upstream.mpi.fortran)
    wrong, folder = upstream.run(test, rig.LIBDIR, "zonda")
    reason = exceptions().get(test.name)
    if wrong and reason:
        raise rig.Skip("%s (%s)" % (reason, EXCEPTIONS.name))
    reference = upstream.reference(scratch)
    if reference and (wrong or long):
        theirs, beside = upstream.run(test, reference, "debian")
        if theirs and wrong:
            raise rig.Skip("it fails on Debian's library, too: %s" % theirs[:200])
        if not (theirs or wrong or reason):
            wrong = compare(folder, beside)
    if wrong:
        raise rig.Wrong(wrong)
    if reason:
        raise rig.Wrong("it passes, and %s says: %s" % (EXCEPTIONS.name, reason))
    shutil.rmtree(folder.parent, ignore_errors=True)
