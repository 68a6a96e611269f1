# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finished files that are copied to S3: the object has the bytes of a local copy, small or in parts; what fails leaves nothing to be seen."""
import signal
import subprocess
import time

import made
import places
import rig
from rig import Wrong
from servers import free_ports

SECONDS = 120
SOURCE = "files/tas_mod2_hist_rectilin_grid_2D.nc"
# A read of an object with a true signature: endpoint, bucket, key; the bytes on standard output. An object that is not there ends it with 3.
GET = """
import sys, boto3, botocore.config, botocore.exceptions
endpoint, bucket, key = sys.argv[1:]
config = botocore.config.Config(proxies={}, s3={"addressing_style": "path"}, retries={"max_attempts": 1})
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)
try:
    sys.stdout.buffer.write(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
except botocore.exceptions.ClientError as why:
    sys.exit(3 if why.response["ResponseMetadata"]["HTTPStatusCode"] == 404 else str(why))
"""


def got(bench, way, key):
    """The bytes of an object; None where there is none."""
    endpoint, settings = way.upload
    python = rig.python("boto3")
    if not python:
        raise rig.Skip("no Python with boto3")
    done = bench.run([python, "-c", GET, endpoint, bench.servers.bucket, key], rig.environment(None, places.NETWORK, **settings), text=False)
    if done.returncode not in (0, 3):
        raise Wrong("the object cannot be read: %s" % done.stderr[-300:])
    return done.stdout if done.returncode == 0 else None


def copied(bench, way, source, key):
    """`zonda copy` to the object, and to a path beside: the same bytes; and it opens from there."""
    local = bench.scratch / "copied.nc"
    env = way.environment()
    rig.must([rig.ZONDA, "copy", "-f", source, local], rig.environment(rig.LIBDIR))
    done = bench.run([rig.ZONDA, "copy", source, way.url(key)], env, seconds=SECONDS)
    if done.returncode:
        raise Wrong("it ends with %s: %s" % (done.returncode, done.stderr[-300:]))
    if got(bench, way, key) != local.read_bytes():
        raise Wrong("the object has other bytes than a local copy")
    texts = [rig.must([rig.BIN / "ncdump", "-h", "-n", "x", each], env) for each in (local, way.url(key))]
    if texts[0] != texts[1]:
        raise Wrong("ncdump says other things of it")


def refused_copies(bench, way):
    """No right, no bucket, no server, and to HTTP: an error, and no object."""
    source, key = bench.files / SOURCE, "put/refused.nc"
    [nobody] = free_ports(1)
    plain = {**way.environment(), "HOME": str(places.home_of(bench.homes, "put", ncrc="HTTP.TIMEOUT=5\nHTTP.CONNECTTIMEOUT=5\n"))}
    cases = [("no bucket", "s3://no-such-bucket/x.nc", plain), ("no server", way.url(key), {**plain, "AWS_ENDPOINT_URL": "http://127.0.0.1:%d" % nobody}),
             ("by http", "http://127.0.0.1:%d/x.nc" % nobody, plain)]  # fmt: skip
    if way.name.startswith("versitygw"):
        cases.append(("wrong secret", way.url(key), {**plain, "AWS_SECRET_ACCESS_KEY": "wrong"}))
    for name, target, env in cases:
        if name == "no bucket" and way.name.startswith("moto"):
            continue
        done = bench.run([rig.ZONDA, "copy", source, target], env, seconds=SECONDS)
        if done.returncode == 0 or not done.stderr.strip():
            raise Wrong("%s: it ends with %s and says %r" % (name, done.returncode, done.stderr))
    if got(bench, way, key) is not None:
        raise Wrong("there is an object")


def killed_copy(bench, way, source):
    """Nothing is there before all of it is."""
    key = "put/killed.nc"
    with subprocess.Popen([rig.ZONDA, "copy", source, way.url(key)], env=way.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        time.sleep(0.15)
        child.send_signal(signal.SIGKILL)
    found, whole = got(bench, way, key), bench.scratch / "killed-whole.nc"
    # It may have been killed when all was there. The object is what a local copy is.
    rig.must([rig.ZONDA, "copy", "-f", source, whole], way.environment())
    if found is not None and found != whole.read_bytes():
        raise Wrong("there is an object of %d bytes" % len(found))


def created(bench, way):
    """A netCDF file is not created at a URL, and the library says why."""
    script = ("import ctypes,sys; nc=ctypes.CDLL(sys.argv[1]); nc.nc_zonda_last_error.restype=ctypes.c_char_p; i=ctypes.c_int();"
              "print(nc.nc_create(sys.argv[2].encode(), 0, ctypes.byref(i)), nc.nc_zonda_last_error().decode())")  # fmt: skip
    for url in (way.url("put/created.nc"), "http://127.0.0.1:1/created.nc#mode=bytes"):
        said = bench.run([rig.python("ctypes"), "-c", script, rig.LIBRARY, url], way.environment()).stdout
        code, _, why = said.partition(" ")
        if code in ("0", "") or "copy" not in why:
            raise Wrong("it says %r" % said)


def all_of(bench):
    large = bench.scratch / "large.nc"
    large.write_bytes(made.classic(6 << 20))
    for name in ("versitygw s3://", "moto s3://", "versitygw path style"):
        for test, words in ((copied, (bench.files / SOURCE, "put/small.nc")), (copied, (large, "put/large.nc")), (refused_copies, ()), (killed_copy, (large,)), (created, ())):
            words = (words[0], "%s-%s" % (words[1], name.replace("/", "").replace(" ", "-"))) if len(words) == 2 else words
            case = "put %s, %s %s" % (name, test.__name__, words[-1] if len(words) == 2 else "")
            if bench.options.wants(case) and not (test is not copied and name.endswith("style")):
                bench.counts.attempt(case, by_way, bench, name, test, words)


def by_way(bench, name, test, words):
    test(bench, bench.way(name), *words)
