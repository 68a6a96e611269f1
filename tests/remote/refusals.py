# SPDX-License-Identifier: MIT OR Apache-2.0
"""What has to be refused: the error names the URL and says why, nothing is told as a value, and nobody waits for long. And secrets."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import made
import places
import rig
from rig import Wrong
from servers import free_ports

FILE = "files/example_2.nc"
# Tries again, pauses and all, under the settings of these tests.
SECONDS = 30
SHORT = "HTTP.TIMEOUT=5\nHTTP.CONNECTTIMEOUT=5\n"
NC_ECURL, NC_EIO = -67, -68
CAPI = Path(__file__).with_name("capi.py")


def home(bench, name, text="", **files):
    return places.home_of(bench.homes, name, ncrc=SHORT + text, **files)


def cases(bench):
    """(name, URL, home, variables, words that the error has)."""
    s, started = bench.servers, bench.servers.running
    plain, bytes_ = home(bench, "r-plain"), "#mode=bytes"
    [nobody] = free_ports(1)
    yield "no server", "http://127.0.0.1:%d/%s%s" % (nobody, FILE, bytes_), plain, {}, "connect|refused"
    yield "no host", "http://nobody.invalid/%s%s" % (FILE, bytes_), plain, {}, "no such host .nobody.invalid."
    if "nginx" in started:
        wrong = home(bench, "r-wrong", places.credentials(s.http, s.user, "wrong" + s.password[:4]))
        other_host = home(bench, "r-other-host", places.credentials("http://localhost:%d" % s.port, s.user, s.password))
        netrc = home(bench, "r-netrc", netrc="machine 127.0.0.1 login %s password wrong\n" % s.user)
        ca = "HTTP.SSL.CAINFO=%s\n"
        right_ca, other_ca = home(bench, "r-ca", ca % s.ca), home(bench, "r-other-ca", ca % (s.folder / "other-ca.pem"))
        yield "no object", "%s/no/such.nc%s" % (s.http, bytes_), plain, {}, "404"
        yield "a folder", "%s/files/%s" % (s.http, bytes_), plain, {}, "403"
        yield "no password", "%s/%s%s" % (s.login, FILE, bytes_), plain, {}, "401"
        yield "wrong password", "%s/%s%s" % (s.login, FILE, bytes_), wrong, {}, "401"
        yield "password of another server", "%s/%s%s" % (s.login, FILE, bytes_), other_host, {}, "401"
        yield "wrong netrc", "%s/%s%s" % (s.login, FILE, bytes_), netrc, {}, "401"
        yield "no CA", "%s/%s%s" % (s.https, FILE, bytes_), plain, {}, "ertificate|issuer"
        yield "another CA", "%s/%s%s" % (s.https, FILE, bytes_), other_ca, {}, "ertificate|issuer"
        yield "no such CA file", "%s/%s%s" % (s.https, FILE, bytes_), home(bench, "r-no-ca", ca % "/no/such.pem"), {}, "/no/such.pem|CAINFO|ertificate"
        yield "certificate of another name", "%s/%s%s" % (s.misnamed, FILE, bytes_), right_ca, {}, "ertificate|name"
        yield "a server without TLS", "https://127.0.0.1:%d/%s%s" % (s.port, FILE, bytes_), right_ca, {}, "http:// instead of https://"
        yield "no certificate of the client", "%s/%s%s" % (s.mutual, FILE, bytes_), right_ca, {}, "400|ertificate"
        yield "a loop", "%s/loop/%s%s" % (s.http, FILE, bytes_), plain, {}, "redirect"
        yield "moved to a file", "%s/to-file/x%s" % (s.http, bytes_), plain, {}, "redirect|file"
        yield "busy for ever", "%s/busy/%s%s" % (s.http, FILE, bytes_), plain, {}, "503"
    if "squid" in started:
        url = "%s/%s%s" % (s.http, FILE, bytes_)
        yield "no login at the proxy", url, plain, {"http_proxy": s.proxy_bare}, "407"
        yield "wrong login at the proxy", url, plain, {"http_proxy": s.proxy.replace(s.proxy_password, "wrong")}, "407"
        https = "%s/%s%s" % (s.https, FILE, bytes_)
        yield "no login at the proxy, https", https, home(bench, "r-ca", "HTTP.SSL.CAINFO=%s\n" % s.ca), {"https_proxy": s.proxy_bare}, "407|roxy"
    if "versitygw" in started:
        right = {"AWS_ACCESS_KEY_ID": s.key, "AWS_SECRET_ACCESS_KEY": s.secret, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": s.s3_endpoint}
        url = "s3://%s/%s" % (s.bucket, FILE)
        yield "wrong secret", url, plain, {**right, "AWS_SECRET_ACCESS_KEY": "wrong" + s.secret[:4]}, "403"
        # versitygw has a 404 for it.
        yield "unknown key", url, plain, {**right, "AWS_ACCESS_KEY_ID": "AKNOBODY"}, "403|status 404, XAdminUserNotFound"
        yield "no key", url, plain, {"AWS_ENDPOINT_URL": s.s3_endpoint, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}, "403"
        yield "no key of that name", "s3://%s/no/such.nc" % s.bucket, plain, right, "404"
        # Whoever may give a program a URL gets nothing that is signed.
        elsewhere = {**right, "AWS_ENDPOINT_URL": "https://s3.example.org"}
        yield "keys of another server", "%s/%s/%s#mode=s3,bytes" % (s.s3_endpoint, s.bucket, FILE), plain, elsewhere, "403.*only the URL names this server"
        yield "no bucket", "s3://no-such-bucket/%s" % FILE, plain, right, "404|403"


def all_of(bench):
    s = bench.servers
    if "versitygw" in s.running:
        bench.counts.attempt("upload of one", places.uploaded, s, bench.files, [FILE], [way for way in bench.ways if way.name.startswith("versitygw")])
    for name, url, where, variables, words in cases(bench):
        if bench.options.wants("refused " + name):
            bench.counts.attempt("refused " + name, refused, bench, url, where, variables, words)
    if bench.options.wants("refused silent_resolver"):
        bench.counts.attempt("refused silent_resolver", silent_resolver, bench)
    for how in ENDS:
        if bench.options.wants("refused ended_handshake " + how):
            bench.counts.attempt("refused ended_handshake " + how, ended_handshake, bench, how)
    if "nginx" in s.running:
        for test in (off_by_key, nobody_else_gets_it, killed_in_read, changed_in_between):
            if bench.options.wants("refused " + test.__name__):
                bench.counts.attempt("refused " + test.__name__, test, bench)


def refused(bench, url, where, variables, words):
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=where, **variables)
    began = time.monotonic()
    done = bench.run([rig.BIN / "ncdump", url], env, seconds=3 * SECONDS)
    took = time.monotonic() - began
    if done.returncode == 0 or done.stdout:
        raise Wrong("it ends with %s and says %r" % (done.returncode, done.stdout[:200]))
    if done.returncode < 0:
        raise Wrong("it dies of %s" % signal.Signals(-done.returncode).name)
    if took > SECONDS:
        raise Wrong("it takes %.1f s" % took)
    # The tool has a code, whose text is the reference's; the library says all of it.
    said = json.loads(bench.run([sys.executable, CAPI, rig.LIBRARY, url], env, seconds=3 * SECONDS).stdout)
    if said["open"] == 0:
        raise Wrong("the C interface opens it")
    shown = re.sub(r"#.*", "", url)
    if shown not in said["error"]:
        raise Wrong("the error does not name %s: %s" % (shown, said["error"]))
    if not re.search(words, said["error"]):
        raise Wrong("the error has nothing of %s: %s" % (words, said["error"]))


def silent_resolver(bench):
    """A lookup of the host that never ends is given up when the time for a connection is over, and the program ends besides it."""
    source, library = bench.scratch / "silent.c", bench.scratch / "silent.so"
    source.write_text("#include <unistd.h>\nint getaddrinfo(void) { for (;;) pause(); }\n")
    rig.compile_c(library, source, link=None, flags=["-shared", "-fPIC"])
    where = places.home_of(bench.homes, "r-silent", ncrc="HTTP.CONNECTTIMEOUT=2\n")
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=where, LD_PRELOAD=library)
    url, began = "http://silent.example.org/x.nc#mode=bytes", time.monotonic()
    said = json.loads(bench.run([sys.executable, CAPI, rig.LIBRARY, url], env, seconds=3 * SECONDS).stdout)
    took = time.monotonic() - began
    if said["open"] != NC_ECURL or "silent.example.org/x.nc" not in said["error"] or "DNS" not in said["error"]:
        raise Wrong("it says %s" % said)
    if not 1.5 < took < 10:
        raise Wrong("it takes %.1f s" % took)


# How a server ends a connection before both sides have come to terms: whether it reads what the client says first, and whether it resets.
ENDS = {"at once": (False, False), "after the greeting": (True, False), "by a reset": (True, True)}


def ended_handshake(bench, how):
    """A failure of the connection, as with libcurl, and not a file of an unknown format."""
    reads, resets = ENDS[how]
    listener = socket.create_server(("127.0.0.1", 0))
    n_asked = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            n_asked.append(1)
            with connection:
                if reads:
                    connection.recv(65536)
                if resets:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    threading.Thread(target=serve, daemon=True).start()
    url = "https://127.0.0.1:%d/a.nc" % listener.getsockname()[1]
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=home(bench, "r-ended", "HTTP.SSL.VALIDATE=0\n"))
    # As a file, and as what may be a dataset of OPeNDAP.
    for behind, code in (("#mode=bytes", NC_ECURL), ("", NC_EIO)):
        before = len(n_asked)
        said = json.loads(bench.run([sys.executable, CAPI, rig.LIBRARY, url + behind], env, seconds=3 * SECONDS).stdout)
        if said["open"] != code or url not in said["error"] or "TLS: the connection ended before" not in said["error"]:
            raise Wrong("%s: it says %s" % (behind, said))
        if len(n_asked) - before < 2:
            raise Wrong("%s: it is not tried again" % behind)
    listener.close()


def off_by_key(bench):
    """Without verification it works, and a line says so each time."""
    s = bench.servers
    where = home(bench, "r-off", "HTTP.SSL.VALIDATE=0\n")
    done = bench.run([rig.BIN / "ncdump", "-h", "%s/%s#mode=bytes" % (s.https, FILE)], rig.environment(rig.LIBDIR, places.NETWORK, HOME=where))
    if done.returncode or "dimensions:" not in done.stdout:
        raise Wrong("it ends with %s: %s" % (done.returncode, done.stderr))
    if not re.search("certificate|verif", done.stderr):
        raise Wrong("nothing says that certificates are not verified: %r" % done.stderr)


def nobody_else_gets_it(bench):
    """A redirect to another server takes no login along, nor one from https to http."""
    s = bench.servers
    s.log()
    lines = places.credentials(s.http, s.user, s.password) + places.credentials(s.https, s.user, s.password) + "HTTP.SSL.CAINFO=%s\n" % s.ca
    where = home(bench, "r-follow", lines)
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=where)
    for url in ("%s/elsewhere/%s" % (s.http, FILE), "%s/down/%s" % (s.https, FILE), "%s/elsewhere/%s" % (s.http.replace("//", "//%s:%s@" % (s.user, s.password)), FILE)):
        bench.run([rig.BIN / "ncdump", "-h", url + "#mode=bytes"], env)
    rows, first = s.log(), [s.port, int(s.https.rsplit(":", 1)[1])]
    if not any(status == 302 and user == s.user for _, status, _, _, _, _, user, _ in rows):
        raise Wrong("nobody logged in at the first server: %s" % rows[:3])
    # `/down/` leads to the http server of the same host, where nothing asks for a login: none may come.
    leaks = [row for row in rows if row[6] not in ("-", "") and (row[0] not in first or row[0] == s.port and not row[4].startswith("/elsewhere/"))]
    if leaks:
        raise Wrong("the login went to %s" % (leaks[0],))


def killed_in_read(bench):
    """nginx dies in the middle of a body: an error, and only fill in memory."""
    s, n = bench.servers, 1 << 20
    (bench.files / "slow.nc").write_bytes(made.classic(n))
    port = s.port
    url = "%s/slow/slow.nc#mode=bytes" % s.http
    where = places.home_of(bench.homes, "r-killed", ncrc="HTTP.TIMEOUT=20\nHTTP.CONNECTTIMEOUT=2\n")
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=where)
    with subprocess.Popen([sys.executable, CAPI, rig.LIBRARY, url, made.NAME, str(n)], env=env, stdout=subprocess.PIPE, text=True) as child:
        time.sleep(3)
        still = child.poll() is None
        s.stop("nginx", signal.SIGKILL)
        try:
            told = json.loads(child.communicate(timeout=3 * SECONDS)[0])
        except subprocess.TimeoutExpired:
            child.kill()
            raise Wrong("it waits for ever") from None
        finally:
            s.nginx(bench.files)
            again(bench)
    if not still:
        raise Wrong("it was done before the server was killed: %s" % told)
    if told["open"] == 0 and (told["get"] == 0 or told["delivered"] or told["fill"] != n):
        raise Wrong("%s" % told)
    if "127.0.0.1:%d/slow/slow.nc" % port not in told["error"]:
        raise Wrong("the error does not name the URL: %s" % told["error"])


def again(bench):
    """nginx has other ports now: ways lead there."""
    fresh = {way.name: way for way in places.of_nginx(bench.servers, bench.homes)}
    if "squid" in bench.servers.running:
        fresh.update({way.name: way for way in places.of_squid(bench.servers, bench.homes)})
    bench.ways = [fresh.get(way.name, way) for way in bench.ways]


def changed_in_between(bench):
    """A file that becomes another while it is open: no value of either is mixed with the other's."""
    s, n = bench.servers, 1 << 20
    path = bench.files / "changing.nc"
    path.write_bytes(made.classic(n))
    # It waits between open and get until the file is another.
    script = "import ctypes,sys;sys.path.insert(0,%r);import made\n" % str(CAPI.parent) + CHANGING
    url = "%s/changing.nc#mode=bytes" % s.http
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=home(bench, "r-plain"))
    with subprocess.Popen([sys.executable, "-c", script, str(rig.LIBRARY), url, str(n)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        first = child.stdout.readline().strip()
        other = path.with_suffix(".new")
        other.write_bytes(made.classic(n).replace(made.classic(500)[-1000:], bytes(1000)))
        os.utime(other, (1e9, 1e9))
        other.replace(path)
        said = child.communicate("go\n", timeout=3 * SECONDS)[0].strip()
    if first != "0":
        raise Wrong("the open gives %s" % first)
    code, filled = said.split()
    if code == "0" or int(filled) != n:
        raise Wrong("the get gives %s, %s of %d values are fill" % (code, filled, n))


CHANGING = """
nc = ctypes.CDLL(sys.argv[1]); ncid = ctypes.c_int(); n = int(sys.argv[3])
print(nc.nc_open(sys.argv[2].encode(), 0, ctypes.byref(ncid)), flush=True)
sys.stdin.readline()
values = (ctypes.c_float * n)()
code = nc.nc_get_var_float(ncid, 0, values)
print(code, sum(v == made.FILL for v in values))
"""


# ---- Secrets

def secrets_of(bench):
    if "nginx" not in bench.servers.running:
        bench.counts.skip("secrets", "no nginx")
        return
    for test in (url_with_password, signed_url, traced):
        if bench.options.wants("secrets " + test.__name__):
            bench.counts.attempt("secrets " + test.__name__, test, bench)


def url_with_password(bench):
    """User and password in the URL work, and are shown nowhere: not by nc_inq_path, errors, tools."""
    s = bench.servers
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=home(bench, "r-plain"))
    host = s.login.replace("//", "//%s:%s@" % (s.user, s.password))
    told = json.loads(bench.run([sys.executable, CAPI, rig.LIBRARY, "%s/%s#mode=bytes" % (host, FILE)], env).stdout)
    if told["open"] != 0:
        raise Wrong("it does not open: %s" % told)
    if s.user in told["path"] or FILE not in told["path"]:
        raise Wrong("nc_inq_path says %s" % told["path"])
    for command in (["ncdump", "-h"], ["nccopy"], ["zonda", "info"], ["zonda", "dump"], ["zonda", "check"]):
        for name in (FILE, "no/such.nc"):
            target = [bench.scratch / "secrets.nc"] if command == ["nccopy"] else []
            # Each output is searched by `run`.
            done = bench.run([rig.BIN / command[0], *command[1:], "%s/%s#mode=bytes" % (host, name), *target], env)
            if (done.returncode == 0) != (name == FILE):
                raise Wrong("%s of %s ends with %s: %s" % (command[0], name, done.returncode, done.stderr))
            if s.user in done.stdout + done.stderr:
                raise Wrong("%s says the user: %s" % (command[0], done.stderr))


def signed_url(bench):
    """A signature in the query is sent, and shown nowhere."""
    s = bench.servers
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=home(bench, "r-plain"))
    listener = socket.create_server(("127.0.0.1", 0))
    port, seen = listener.getsockname()[1], []

    def answer():
        for _ in range(20):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()
    query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=%s&token=%s" % (s.secret, s.password)
    done = bench.run([rig.BIN / "ncdump", "http://127.0.0.1:%d/x.nc?%s#mode=bytes" % (port, query)], env)
    told = json.loads(bench.run([sys.executable, CAPI, rig.LIBRARY, "http://127.0.0.1:%d/x.nc?%s#mode=bytes" % (port, query)], env).stdout)
    listener.close()
    if done.returncode == 0 or told["open"] == 0:
        raise Wrong("a 403 is no error")
    if not seen or query.encode() not in seen[0]:
        raise Wrong("the query is not sent as it is: %r" % (seen or [b""])[0][:200])


def traced(bench):
    """A trace has the requests, and no secret."""
    s, trace = bench.servers, bench.scratch / "trace"
    host = s.login.replace("//", "//%s:%s@" % (s.user, s.password))
    env = rig.environment(rig.LIBDIR, places.NETWORK, HOME=home(bench, "r-plain"), ZONDA_TRACE=trace)
    bench.run([rig.BIN / "ncdump", "-h", "%s/%s?token=%s#mode=bytes" % (host, FILE, s.secret)], env)
    if not trace.exists():
        raise Wrong("there is no trace")
    found = [secret for secret in s.secrets() if secret.encode() in trace.read_bytes()]
    if found:
        raise Wrong("a secret is in the trace")
    said = bench.run([rig.ZONDA, "trace", trace], rig.environment(rig.LIBDIR)).stdout
    if "example_2.nc" not in said:
        raise Wrong("the trace does not name the file: %s" % said[:300])
