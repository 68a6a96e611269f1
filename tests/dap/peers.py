# SPDX-License-Identifier: MIT OR Apache-2.0
"""Servers of others on what peer_arrays.py makes: pydap, opendap-protocol, xpublish-opendap (scripts/setup.sh --test installs them)."""
import os
from pathlib import Path

import client
import numpy as np
import peer_arrays as arrays
import rig
from client import Expected
from rig import Wrong
from servers import free_ports

HERE = Path(__file__).resolve().parent
MODULES = {"pydap": ("pydap", "webob"), "protocol": ("opendap_protocol",), "xpublish": ("xpublish_opendap", "uvicorn", "xarray")}
PATHS = {"pydap": "/all", "protocol": "/all", "xpublish": "/datasets/all/opendap"}
# They have an environment of their own: they want other versions of what is measured beside Zonda.
VENV = rig.ROOT / "out" / "venv-dap" / "bin" / "python"
# Where the stage `python` installs the package.
OURS = rig.ROOT / "out" / "python" / "bin" / "python"


def python(*modules):
    """A Python with these modules, which may be the servers' own."""
    found = rig.python(*modules)
    for other in (VENV, OURS):
        if not found and os.path.exists(other) and rig.run([other, "-c", "import " + ", ".join(modules)]).returncode == 0:
            found = str(other)
    if not found:
        raise rig.Skip("no Python with %s" % ", ".join(modules))
    return found


def start(bench, name):
    """Starts a server; the beginning of its URLs. It runs until the end of the tests."""
    if name not in bench.peers:
        interpreter = python(*MODULES[name])
        [port] = free_ports(1)
        bench.servers.start(name, [interpreter, HERE / "peer_server.py", name, port], port, env=rig.environment())
        bench.peers[name] = "http://127.0.0.1:%d" % port
    return bench.peers[name]


def expected(name):
    """What the variables are to netCDF."""
    made = [Expected(key, data) for key, data in {**arrays.coordinates(), **arrays.grids()}.items()]
    if name == "pydap":
        made += [Expected(key, np.asarray(data)) for key, data in arrays.scalars().items()]
        words = np.array([word.encode() for word in arrays.WORDS], dtype=object)
        made += [Expected("words", client.chars(words), "char"), Expected("st.n", np.array(5, "i4")), Expected("st.v", np.arange(6, dtype="f4").reshape(2, 3))]
    return made


def equal(bench, name):
    url = start(bench, name) + PATHS[name]
    names = client.equal(bench, url, expected(name), bench.environment(), bench.options.seed, bench.options.by(1, 2, 10))
    missing = {each.name for each in expected(name)} - set(names)
    if missing:
        raise Wrong("it has no %s" % ", ".join(sorted(missing)))


def sequence(bench):
    """A sequence, of which a client knows the length only by asking for it."""
    rows = arrays.rows()
    texts = np.array([name.encode() for _, _, name in rows], dtype=object)
    made = [Expected("rows.n", np.array([row[0] for row in rows], "i4")), Expected("rows.v", np.array([row[1] for row in rows])), Expected("rows.name", client.chars(texts), "char")]
    client.equal(bench, start(bench, "pydap") + "/rows", made, bench.environment(), bench.options.seed)


def all_of(bench):
    for name in MODULES:
        if bench.options.wants("servers %s" % name):
            bench.counts.attempt("servers %s" % name, equal, bench, name)
    if bench.options.wants("servers pydap sequence"):
        bench.counts.attempt("servers pydap sequence", sequence, bench)


# ---- xarray

XARRAY = """
import hashlib, sys, numpy, xarray
url, engine = sys.argv[1:]
# pydap's engine rounds floats of attributes otherwise, has numbers without signs, and other names for members of structures.
short = lambda a: a.astype("f4") if a.dtype.kind == "f" else a
told = lambda attrs: sorted((k, str(short(numpy.asarray(a)).tolist())) for k, a in attrs.items())
with xarray.open_dataset(url, engine=engine, decode_times=False, mask_and_scale=False) as file:
    for name in sorted(file.variables):
        v = file[name]
        if "." in name or "/" in name:
            continue
        if v.dtype.kind == "u":
            v = v.astype("i%d" % v.dtype.itemsize)
        values = numpy.asarray(v.values)
        if values.dtype.kind not in "iuf":
            # Texts: of pydap objects, of ours bytes.
            print(name, v.dims, [t.decode() if isinstance(t, bytes) else str(t) for t in values.ravel().tolist()], told(v.attrs))
            continue
        print(name, v.dims, v.shape, hashlib.sha256(values.astype(values.dtype.newbyteorder("<")).tobytes()).hexdigest()[:16], told(v.attrs))
        part = v.isel({d: slice(0, None, 2) for d in v.dims})
        print(name, part.shape, float(part.values.astype("f8").sum()) if part.dtype.kind in "iuf" else part.values.tolist())
    print(told(file.attrs))
"""


def by_engine(bench, url, engine, interpreter, env):
    done = bench.run([interpreter, "-c", XARRAY, url, engine], env, seconds=client.SECONDS)
    if done.returncode:
        raise Wrong("%s: %s" % (engine, done.stderr.strip()[-300:]))
    return done.stdout


def xarray(bench, url, engine):
    theirs = by_engine(bench, url.replace("http://", "dap2://"), "pydap", python("pydap", "xarray"), rig.environment())
    if engine == "zonda":
        try:
            ours = by_engine(bench, url, engine, python("zonda", "xarray"), rig.environment(None))
        except Wrong as why:
            if "feature that was not turned on" in str(why):
                raise rig.Skip("the installed package is older than OPeNDAP") from None
            raise
    else:
        ours = by_engine(bench, url, engine, python("netCDF4", "xarray"), rig.environment(None, LD_LIBRARY_PATH=None))
    if ours != theirs:
        lines = [(a, b) for a, b in zip(theirs.splitlines(), ours.splitlines()) if a != b][:2]
        raise Wrong("pydap's engine and %s: %s" % (engine, lines))
