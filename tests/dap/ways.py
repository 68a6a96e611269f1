# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ways to an OPeNDAP server: logins, cookies, redirects, certificates and proxies, as tests/remote has them for files.

nginx stands in front of our own server.
"""
import os

import client
import places
from places import Way, home_of
from rig import Wrong
from servers import free_ports, program

NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/dap.pid; error_log {folder}/dap-error.log; {user}
events {{ worker_connections 1024; }}
http {{
    access_log off; client_body_temp_path {folder}/d-body; proxy_temp_path {folder}/d-proxy; fastcgi_temp_path {folder}/d-f; uwsgi_temp_path {folder}/d-u; scgi_temp_path {folder}/d-s;
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_redirect off;
    server {{
        listen 127.0.0.1:{http};
        location / {{ proxy_pass {up}; }}
        location /login/ {{ auth_basic "dap"; auth_basic_user_file {folder}/users; proxy_pass {up}/; }}
        location /moved/ {{ rewrite ^/moved/(.*)$ http://127.0.0.1:{http}/$1 redirect; }}
        location /elsewhere/ {{ auth_basic "dap"; auth_basic_user_file {folder}/users; rewrite ^/elsewhere/(.*)$ http://localhost:{other}/$1 redirect; }}
        location /loop/ {{ rewrite ^/loop/(.*)$ /loop/$1 redirect; }}
        location /busy/ {{ return 503; }}
        location /denied/ {{ return 403; }}
    }}
    server {{ listen 127.0.0.1:{other}; location / {{ proxy_pass {up}; }} }}
    server {{
        listen 127.0.0.1:{https} ssl;
        ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
        location / {{ proxy_pass {up}; }}
        location /login/ {{ auth_basic "dap"; auth_basic_user_file {folder}/users; proxy_pass {up}/; }}
    }}
    server {{
        listen 127.0.0.1:{mutual} ssl;
        ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key; ssl_client_certificate {folder}/ca.pem; ssl_verify_client on;
        location / {{ proxy_pass {up}; }}
    }}
}}
"""


class Front:
    """nginx in front of a server."""

    def __init__(self, servers, upstream):
        self.folder, self.user, self.password = servers.folder, servers.user, servers.password
        nginx = program("nginx")
        if not (self.folder / "server.pem").exists():
            servers.certificates()
            servers.users(self.folder / "users", servers.user, servers.password)
        http, other, https, mutual = free_ports(4)
        user = "user root;" if os.getuid() == 0 else ""
        conf = self.folder / "dap.conf"
        conf.write_text(NGINX.format(folder=self.folder, user=user, up=upstream, http=http, other=other, https=https, mutual=mutual))
        servers.start("nginx for DAP", [nginx, "-e", self.folder / "dap-error.log", "-p", self.folder, "-c", conf], http)
        self.http, self.https, self.mutual = "http://127.0.0.1:%d" % http, "https://127.0.0.1:%d" % https, "https://127.0.0.1:%d" % mutual


def ways(front, homes, proxies):
    plain = home_of(homes, "plain")
    login = home_of(homes, "dap-login", ncrc=places.credentials(front.http, front.user, front.password))
    netrc = home_of(homes, "dap-netrc", netrc="machine 127.0.0.1 login %s password %s\n" % (front.user, front.password))
    daprc = home_of(homes, "dap-daprc", daprc="HTTP.CREDENTIALS.USERPASSWORD=%s:%s\n" % (front.user, front.password))
    ca = home_of(homes, "dap-ca", ncrc="HTTP.SSL.CAINFO=%s\n" % (front.folder / "ca.pem"))
    both = home_of(homes, "dap-both", ncrc="HTTP.SSL.CAINFO=%s\n" % (front.folder / "ca.pem") + places.credentials(front.https, front.user, front.password))
    lines = "HTTP.SSL.CAINFO=%s\nHTTP.SSL.CERTIFICATE=%s\nHTTP.SSL.KEY=%s\n"
    mutual = home_of(homes, "dap-mutual", ncrc=lines % (front.folder / "ca.pem", front.folder / "client.pem", front.folder / "client.key"))
    jar = home_of(homes, "dap-jar", ncrc="HTTP.COOKIEJAR=%s\n" % (homes / "jar"))
    made = [
        Way("front", front.http, plain), Way("login", front.http + "/login", login), Way("netrc", front.http + "/login", netrc), Way("daprc", front.http + "/login", daprc),
        Way("in the URL", front.http.replace("//", "//%s:%s@" % (front.user, front.password)) + "/login", plain),
        Way("moved", front.http + "/moved", plain), Way("cookie", front.http + "/cookie", jar), Way("cookie without a jar", front.http + "/cookie", plain),
        Way("elsewhere", front.http + "/elsewhere", login),
        Way("https", front.https, ca), Way("https login", front.https + "/login", both), Way("certificate", front.mutual, mutual),
    ]  # fmt: skip
    if proxies:
        made += [Way("proxy", front.http, plain, {"http_proxy": proxies.proxy}),
                 Way("proxy https", front.https.replace("127.0.0.1", "localhost"), ca, {"https_proxy": proxies.proxy})]  # fmt: skip
    return made


# Way, how it is wrong, and what codes may come of it: NC_EAUTH, NC_EACCESS, NC_ECURL, NC_EDAPSVC and the like.
REFUSALS = (("/login", "no password"), ("/login", "wrong password"), ("/loop", "endless redirects"), ("/busy", "503"), ("/denied", "403"), ("", "404"), ("https", "unknown CA"))


def all_of(bench, expected):
    """By each way the dataset is the same, in both versions; what is refused is an error with no value."""
    server, counts = bench.server(), bench.counts
    front = counts.attempt("ways: nginx", Front, bench.servers, server.url)
    if not front:
        return
    proxies = bench.servers if counts.attempt("ways: squid", bench.servers.squid) else None
    for way in ways(front, bench.homes, proxies):
        for name, before in (("made2", ""), ("made4", "[dap4]")):
            case = "ways %s %s" % (way.name, name)
            if bench.options.wants(case):
                env = bench.environment(way.home, **way.settings)
                counts.attempt(case, client.equal, bench, before + way.url(name), expected(bench, name), env, bench.options.seed, 1, 8)
    for path, what in REFUSALS:
        if bench.options.wants("refused %s" % what):
            counts.attempt("refused %s" % what, refused, bench, front, path, what)


def refused(bench, front, path, what):
    home = bench.home
    if what == "wrong password":
        home = home_of(bench.homes, "dap-wrong", ncrc=places.credentials(front.http, front.user, "no" + front.password[::-1]))
    url = (front.https if path == "https" else front.http + path) + ("/nothing" if what == "404" else "/made2")
    status, text, said = bench.dump(url, "-h", env=bench.environment(home))
    if status == 0 or text.strip():
        raise Wrong("ncdump ends with %d and says %.100r" % (status, text))
    if not bench.options.reference and "127.0.0.1" not in said:
        raise Wrong("the error does not name the URL: %.200r" % said)

