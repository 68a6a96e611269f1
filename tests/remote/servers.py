# SPDX-License-Identifier: MIT OR Apache-2.0
"""Servers on free loopback ports, with all that they write in one folder: nginx, squid, moto, versitygw.

    with Servers(folder) as servers:
        servers.nginx(files)        # then servers.http, .https and so on are beginnings of URLs
        servers.squid()
        servers.moto() and servers.versitygw()

Each call gives the server, or raises rig.Skip where it is not installed (scripts/setup.sh --test does it). All end with the `with`.
Users, passwords and keys are made anew for each folder, so that what is found in an output is found because it leaked.
"""
import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402
from rig import certificates  # noqa: E402

# What each server has to start within.
SECONDS = 30
PR_SET_PDEATHSIG = 1
SBIN = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin:/sbin"
VERSITYGW = rig.ROOT / "out" / "remote" / "bin" / "versitygw"

NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{ worker_connections 1024; }}
http {{
    log_format counted '$server_port $status $body_bytes_sent $request_method $uri range=$http_range login=$remote_user cert=$ssl_client_s_dn';
    access_log {folder}/access.log counted;
    client_body_temp_path {folder}/tmp-body; proxy_temp_path {folder}/tmp-proxy; fastcgi_temp_path {folder}/tmp-f; uwsgi_temp_path {folder}/tmp-u; scgi_temp_path {folder}/tmp-s;
    sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_timeout 60s; keepalive_requests 100000;
    default_type application/octet-stream;
    server {{
        listen 127.0.0.1:{http};
        location / {{ root {files}; }}
        location /login/ {{ alias {files}/; auth_basic "files"; auth_basic_user_file {folder}/users; }}
        location /moved/ {{ rewrite ^/moved/(.*)$ http://127.0.0.1:{http}/$1 redirect; }}
        location /moved-for-good/ {{ rewrite ^/moved-for-good/(.*)$ /$1 permanent; }}
        location /elsewhere/ {{ auth_basic "files"; auth_basic_user_file {folder}/users; rewrite ^/elsewhere/(.*)$ http://localhost:{other}/$1 redirect; }}
        location /loop/ {{ rewrite ^/loop/(.*)$ /loop/$1 redirect; }}
        location /to-file/ {{ return 302 "file://{files}/"; }}
        location /whole/ {{ alias {files}/; max_ranges 0; }}
        location /busy/ {{ return 503; }}
        location /slow/ {{ alias {files}/; limit_rate 50k; }}
    }}
    server {{
        listen 127.0.0.1:{other};
        location / {{ root {files}; }}
    }}
    server {{
        listen 127.0.0.1:{https} ssl;
        ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
        location / {{ root {files}; }}
        location /login/ {{ alias {files}/; auth_basic "files"; auth_basic_user_file {folder}/users; }}
        location /down/ {{ auth_basic "files"; auth_basic_user_file {folder}/users; rewrite ^/down/(.*)$ http://127.0.0.1:{http}/$1 redirect; }}
    }}
    server {{
        listen 127.0.0.1:{mutual} ssl;
        ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
        ssl_client_certificate {folder}/ca.pem; ssl_verify_client on;
        location / {{ root {files}; }}
    }}
    server {{
        listen 127.0.0.1:{misnamed} ssl;
        ssl_certificate {folder}/misnamed.pem; ssl_certificate_key {folder}/misnamed.key;
        location / {{ root {files}; }}
    }}
}}
"""

SQUID = """
http_port 127.0.0.1:{port}
auth_param basic program {auth} {folder}/squid-users
auth_param basic children 2
auth_param basic realm proxy
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
cache deny all
cache_mem 8 MB
access_log stdio:{folder}/access.log
cache_log {folder}/cache.log
pid_filename {folder}/squid.pid
coredump_dir {folder}
netdb_filename none
pinger_enable off
shutdown_lifetime 0 seconds
visible_hostname proxy
{user}
"""


def ends_with_parent():
    """For a child: a runner that is killed ends it, too, as far as the child does not become another user."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_ports(n):
    """So many ports that nobody listens on now."""
    taken = [socket.socket() for _ in range(n)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def program(name):
    found = shutil.which(name, path=SBIN)
    if not found:
        raise rig.Skip("no %s" % name)
    return found


class Servers:
    """Those that were started, by the calls that are named as they are."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        # squid gives up being root, and has to come here; scratch is its owner's alone.
        self.folder.chmod(0o755)
        if self.folder.parent.stat().st_mode & 0o011 != 0o011:
            self.folder.parent.chmod(0o711)
        self.running = {}
        self.user, self.password = "u" + secrets.token_hex(6), "p" + secrets.token_hex(12)
        self.proxy_user, self.proxy_password = "q" + secrets.token_hex(6), "r" + secrets.token_hex(12)
        self.key, self.secret = "AK" + secrets.token_hex(8).upper(), "s" + secrets.token_hex(16)
        self.bucket = "files"

    def __enter__(self):
        # Who is asked to end ends them: they have groups of their own, to which a signal for the runner's does not go.
        self.before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        return self

    def __exit__(self, *_):
        signal.signal(signal.SIGTERM, self.before)
        for name in list(self.running):
            self.stop(name)

    def secrets(self):
        """What must never be seen in an output. A key is no secret, its secret is."""
        return [self.password, self.proxy_password, self.secret]

    # ---- Processes

    def start(self, name, command, port, env=None, cwd=None):
        log = (self.folder / (name + ".log")).open("wb")
        words = [str(word) for word in command]
        child = subprocess.Popen(words, env=env, cwd=cwd or self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=ends_with_parent)
        log.close()
        self.running[name] = child
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if child.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return child
            time.sleep(0.05)
        said = (self.folder / (name + ".log")).read_text(errors="replace")[-600:]
        self.stop(name)
        raise rig.Setup("%s does not start: %s" % (name, said))

    def stop(self, name, how=signal.SIGTERM):
        """Ends a server with all that it started: each has a process group of its own."""
        child = self.running.pop(name, None)
        if child is None:
            return
        for number, seconds in ((how, 5), (signal.SIGKILL, 5)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(seconds)
                break
        # Helpers that outlived it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    # ---- nginx

    def certificates(self):
        """Those of the rig: `ca.pem` is the CA's."""
        try:
            certificates.make(self.folder, program("openssl"))
        except RuntimeError as why:
            raise rig.Setup(str(why)) from None

    def users(self, path, user, password):
        hashed = subprocess.run([program("openssl"), "passwd", "-apr1", "-stdin"], input=password + "\n", capture_output=True, text=True, check=True).stdout.strip()
        path.write_text("%s:%s\n" % (user, hashed))
        path.chmod(0o644)

    def nginx(self, files):
        """The files of a folder by HTTP and HTTPS; sets `http`, `login`, `https` and so on, without the slash at the end."""
        nginx = program("nginx")
        if not (self.folder / "server.pem").exists():
            self.certificates()
            self.users(self.folder / "users", self.user, self.password)
        http, other, https, mutual, misnamed = free_ports(5)
        user = "user root;" if os.getuid() == 0 else ""
        conf = self.folder / "nginx.conf"
        conf.write_text(NGINX.format(folder=self.folder, files=Path(files).resolve(), http=http, other=other, https=https, mutual=mutual, misnamed=misnamed, user=user))
        self.start("nginx", [nginx, "-e", self.folder / "error.log", "-p", self.folder, "-c", conf], http)
        self.port = http
        self.http, self.https = "http://127.0.0.1:%d" % http, "https://127.0.0.1:%d" % https
        self.login, self.moved, self.whole = self.http + "/login", self.http + "/moved", self.http + "/whole"
        self.https_login, self.mutual, self.misnamed = self.https + "/login", "https://127.0.0.1:%d" % mutual, "https://127.0.0.1:%d" % misnamed
        self.ca = self.folder / "ca.pem"
        return self

    def log(self):
        """What nginx answered since the last call: (port, status, bytes of the body, method, path, range, user, client's certificate) each."""
        path = self.folder / "access.log"
        rows = []
        for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
            head, _, rest = line.partition(" range=")
            port, status, sent, method, uri = head.split(" ", 4)
            asked, _, rest = rest.partition(" login=")
            login, _, cert = rest.partition(" cert=")
            rows.append((int(port), int(status), int(sent), method, uri, asked, login, cert))
        # nginx appends: it goes on behind what is cut off.
        os.truncate(path, 0) if path.exists() else None
        return rows

    # ---- squid

    def squid(self):
        """A proxy that wants a login; sets `proxy`, its URL with user and password, and `proxy_bare`, without."""
        squid, auth = program("squid"), None
        for folder in ("/usr/lib/squid", "/usr/lib64/squid", "/usr/libexec/squid"):
            if Path(folder, "basic_ncsa_auth").exists():
                auth = Path(folder, "basic_ncsa_auth")
        if auth is None:
            raise rig.Skip("squid without basic_ncsa_auth")
        folder = self.folder / "squid"
        folder.mkdir(exist_ok=True)
        # It gives up being root.
        folder.chmod(0o777)
        self.users(folder / "squid-users", self.proxy_user, self.proxy_password)
        [port] = free_ports(1)
        user = "cache_effective_user proxy\ncache_effective_group proxy" if os.getuid() == 0 else ""
        (folder / "squid.conf").write_text(SQUID.format(folder=folder, port=port, auth=auth, user=user))
        self.start("squid", [squid, "-N", "-f", folder / "squid.conf"], port, cwd=folder)
        self.proxy = "http://%s:%s@127.0.0.1:%d" % (self.proxy_user, self.proxy_password, port)
        self.proxy_bare = "http://127.0.0.1:%d" % port
        return self

    def squid_log(self):
        path = self.folder / "squid" / "access.log"
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    # ---- S3

    def moto(self):
        """moto's server, which takes any key; sets `moto_endpoint`. It is quick, and strict about the requests themselves."""
        python = rig.python("moto.server", "flask")
        if not python:
            raise rig.Skip("no Python with moto and flask")
        [port] = free_ports(1)
        words = [python, "-c", "import sys; from moto.server import main; main(sys.argv[1:])", "-H", "127.0.0.1", "-p", port]
        self.start("moto", words, port, env={**without_aws(), "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_EC2_METADATA_DISABLED": "true"})
        self.moto_endpoint = "http://127.0.0.1:%d" % port
        self.make_bucket(self.moto_endpoint)
        return self

    def versitygw(self):
        """An S3 server that checks signatures, over a folder; sets `s3_endpoint`, and `s3_folder`, where a file is an object."""
        found = shutil.which("versitygw") or (str(VERSITYGW) if VERSITYGW.exists() else None)
        if not found:
            raise rig.Skip("no versitygw")
        [port] = free_ports(1)
        folder, beside = self.folder / "s3", self.folder / "about-s3"
        for each in (folder / self.bucket, beside):
            each.mkdir(parents=True, exist_ok=True)
        # What S3 knows of an object besides is beside the files: not each file system has attributes for it.
        words = [found, "--port", "127.0.0.1:%d" % port, "--access", self.key, "--secret", self.secret, "--region", "us-east-1", "posix", "--sidecar", beside, folder]
        self.start("versitygw", words, port, env=without_aws())
        self.s3_endpoint, self.s3_folder = "http://127.0.0.1:%d" % port, folder / self.bucket
        return self

    def make_bucket(self, endpoint):
        request = urllib.request.Request("%s/%s" % (endpoint, self.bucket), method="PUT", headers={"Authorization": fake_signature(self.key)})
        self.opened(request)

    def put(self, endpoint, key, data):
        """An object in moto, which believes every signature."""
        request = urllib.request.Request("%s/%s/%s" % (endpoint, self.bucket, key), data=data, method="PUT", headers={"Authorization": fake_signature(self.key)})
        self.opened(request)

    @staticmethod
    def opened(request):
        """Without the proxies of the environment."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=SECONDS) as answer:
                return answer.read()
        except urllib.error.HTTPError as why:
            raise rig.Setup("%s: %s" % (request.full_url, why.read()[-300:])) from None


def fake_signature(key):
    """What moto finds account and region in."""
    return "AWS4-HMAC-SHA256 Credential=%s/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=%s" % (key, "0" * 64)


def without_aws():
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_") and "proxy" not in name.lower()}


def main():
    """Starts all that there are, on a folder, and says where, until the end of standard input: for trying things by hand."""
    files = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    with rig.scratch() as scratch, Servers(scratch / "servers") as servers:
        for start in (lambda: servers.nginx(files), servers.squid, servers.moto, servers.versitygw):
            try:
                start()
            except rig.Skip as why:
                print("skip: %s" % why)
        print(json.dumps({name: str(value) for name, value in vars(servers).items() if isinstance(value, (str, Path, int))}, indent=1), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
