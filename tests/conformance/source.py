"""Gets the reference's source package and configures it twice.

`full`     with the choices of the distribution's own library (netCDF-4, DAP): every test.
`classic`  without netCDF-4: the same test programs then leave out their netCDF-4 parts, so that a
           program which walks through all formats becomes a test of the classic ones alone.

Only `configure` runs here; the library itself is never built from this source.
"""
import glob
import os
import re
import shutil

from settings import HDF5_INC, HDF5_LIB, UPSTREAM, Broken, Unavailable, run_step, tail

COMMON = """--disable-static --disable-nczarr --disable-libxml2 --disable-byterange
--disable-dap-remote-tests --enable-large-file-tests --enable-erange-fill --enable-mmap
--disable-dependency-tracking --disable-doxygen""".split()

# The distribution builds with 16 MiB default chunks and without these two filters; tests read that
# from config.h.
CONFIGS = {
    "full": COMMON + ["--with-default-chunk-size=16777216", "ac_cv_lib_zstd_ZSTD_compress=no",
                      "ac_cv_lib_blosc_blosc_init=no"],
    "classic": COMMON + ["--disable-netcdf-4", "--disable-hdf5", "--disable-dap"],
}


def debian_entries(sources_dir="/etc/apt/sources.list.d", sources_list="/etc/apt/sources.list"):
    """The machine's own Debian package sources as (deb822 text, one-line text), made `deb-src`."""
    paragraphs, lines = [], []
    for f in sorted(glob.glob(os.path.join(sources_dir, "*.sources"))):
        with open(f) as handle:
            text = handle.read()
        for p in re.split(r"\n\s*\n", text):
            if "debian-archive-keyring" in p and re.search(r"^Types:.*\bdeb\b", p, re.M):
                paragraphs.append(re.sub(r"^Types:.*$", "Types: deb-src", p, flags=re.M).strip())
    if not paragraphs:
        for f in [sources_list] + sorted(glob.glob(os.path.join(sources_dir, "*.list"))):
            if os.path.exists(f):
                with open(f) as handle:
                    lines += [re.sub(r"^deb\s", "deb-src ", s) for s in handle
                              if re.match(r"deb\s.*debian", s)]
    return "\n\n".join(paragraphs), "".join(lines)


def download(s, package="netcdf", version=UPSTREAM):
    """Fetches the upstream tarball into out/tarballs with private apt lists; returns its path."""
    pattern = s.path("tarballs", "%s_%s*.orig.tar.*[!c]" % (package, version))
    have = glob.glob(pattern)
    if have:
        return sorted(have)[0]
    if not shutil.which("apt-get"):
        raise Unavailable("there is no apt-get on this machine")
    deb822, oneline = debian_entries()
    if not deb822 and not oneline:
        raise Unavailable("this machine has no Debian package sources")
    parts, lists = s.folder("apt", "parts"), s.folder("apt", "lists")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    name, text = ("own.sources", deb822) if deb822 else ("own.list", oneline)
    with open(os.path.join(parts, name), "w") as f:
        f.write(text + "\n")
    opts = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=" + parts,
            "-o", "Dir::State::Lists=" + lists, "-o", "APT::Sandbox::User=root"]
    log = s.path("apt", "download.log")
    if not glob.glob(lists + "/*Sources*") and run_step(["apt-get"] + opts + ["update"], log):
        raise Unavailable("the package lists cannot be fetched (%s)" % log)
    # A missing packaging tarball on a mirror does no harm, so the exit code alone does not decide.
    run_step(["apt-get"] + opts + ["source", "--download-only", package], log,
             cwd=s.folder("tarballs"))
    have = glob.glob(pattern)
    if not have:
        raise Unavailable("the source package %s %s cannot be fetched (%s)" % (package, version, log))
    return sorted(have)[0]


def unpack(s):
    """The unpacked source folder."""
    tops = glob.glob(s.path("src", "netcdf-*%s*" % UPSTREAM))
    if tops:
        return tops[0]
    tarball, partial = download(s), s.folder("src.partial")
    log = s.path("unpack.log")
    if run_step(["tar", "xf", tarball, "-C", partial], log):
        raise Broken("%s does not unpack:\n%s" % (tarball, tail(log)))
    shutil.rmtree(s.path("src"), ignore_errors=True)
    os.rename(partial, s.path("src"))
    return glob.glob(s.path("src", "*"))[0]


def configure(s, src):
    """Configures what is not configured yet; returns {config name: build folder}."""
    missing = [t for t in ("gcc", "make", "m4", "nm", "ldd") if not shutil.which(t)]
    if missing:
        raise Broken("missing tools: " + " ".join(missing))
    builds = {}
    for name, options in CONFIGS.items():
        build = builds[name] = s.path("configured", name)
        stamp = os.path.join(build, "configured.stamp")
        if os.path.exists(stamp):
            continue
        shutil.rmtree(build, ignore_errors=True)
        os.makedirs(build)
        env = dict(os.environ)
        env.pop("MAKEFLAGS", None)
        if name == "full":
            env.update(CPPFLAGS="-I" + HDF5_INC, LDFLAGS="-L" + HDF5_LIB)
        log = s.path("configured", name + ".log")
        if run_step([os.path.join(src, "configure")] + options, log, cwd=build, env=env):
            raise Broken("configure (%s) failed:\n%s" % (name, tail(log)))
        open(stamp, "w").close()
    return builds
