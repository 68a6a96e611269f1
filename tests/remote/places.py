# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ways to a file that tests go: each gives the URL of a file of the served folder, and the settings that it takes.

`every(servers, home)` makes them all; one whose server is not there is left out, and said so by the caller.
"""
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

# What of the caller's environment says how servers are reached.
NETWORK = ("AWS_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "NCRC", "NETRC", "DAPRC", "SSL_CERT",
           "CURL_", "REQUESTS_")  # fmt: skip
# Uploads a folder with true signatures: endpoint, bucket, folder, and the names by lines on standard input.
UPLOAD = """
import sys, boto3, botocore.config
endpoint, bucket, folder = sys.argv[1:]
config = botocore.config.Config(proxies={}, s3={"addressing_style": "path"}, retries={"max_attempts": 1})
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)
for name in sys.stdin.read().splitlines():
    s3.upload_file(folder + "/" + name, bucket, name)
"""


@dataclass
class Way:
    """`before` and `behind` stand around the name in the URL; `settings` are variables; `home` has the files with settings."""

    name: str
    before: str
    home: Path
    settings: dict = field(default_factory=dict)
    behind: str = ""
    # Whether objects have to be uploaded first: (endpoint, variables), None where they lie in the folder.
    upload: tuple | None = None

    def url(self, name):
        return "%s/%s%s" % (self.before, quote(name), self.behind)

    def shown(self, name):
        """As messages may have it."""
        return "%s/%s" % (self.before, quote(name))

    def environment(self, **more):
        return rig.environment(rig.LIBDIR, NETWORK, HOME=self.home, **{**self.settings, **more})


def home_of(folder, name, **files):
    """A home folder with these files; `ncrc` stands for .ncrc."""
    home = folder / ("home-" + name)
    home.mkdir(exist_ok=True)
    for file, text in files.items():
        (home / ("." + file)).write_text(text)
        (home / ("." + file)).chmod(0o600)
    return home


def credentials(server, user, password):
    """Lines of .ncrc for one server."""
    return "[%s]HTTP.CREDENTIALS.USER=%s\n[%s]HTTP.CREDENTIALS.PASSWORD=%s\n" % (server, user, server, password)


def of_nginx(servers, folder):
    plain = home_of(folder, "plain")
    login = home_of(folder, "login", ncrc=credentials(servers.http, servers.user, servers.password))
    netrc = home_of(folder, "netrc", netrc="machine 127.0.0.1 login %s password %s\n" % (servers.user, servers.password))
    ca = home_of(folder, "ca", ncrc="HTTP.SSL.CAINFO=%s\n" % servers.ca)
    # For this server alone: netCDF4-python sets the key for all servers.
    both = home_of(folder, "ca-login", ncrc="[%s]HTTP.SSL.CAINFO=%s\n" % (servers.https, servers.ca) + credentials(servers.https, servers.user, servers.password))
    lines = "HTTP.SSL.CAINFO=%s\nHTTP.SSL.CERTIFICATE=%s\nHTTP.SSL.KEY=%s\n"
    mutual = home_of(folder, "mutual", ncrc=lines % (servers.ca, servers.folder / "client.pem", servers.folder / "client.key"))
    return [
        Way("http", servers.http, plain, behind="#mode=bytes"),
        Way("plain url", servers.http, plain),
        Way("bracket", "[bytes]" + servers.http, plain),
        Way("whole", servers.whole, plain, behind="#mode=bytes"),
        Way("moved", servers.moved, plain, behind="#mode=bytes"),
        Way("login", servers.login, login, behind="#mode=bytes"),
        Way("netrc", servers.login, netrc, behind="#mode=bytes"),
        Way("https", servers.https, ca, behind="#mode=bytes"),
        Way("https login", servers.https_login, both, behind="#mode=bytes"),
        Way("certificate", servers.mutual, mutual, behind="#mode=bytes"),
    ]


def of_squid(servers, folder):
    plain, ca = home_of(folder, "plain"), home_of(folder, "ca", ncrc="HTTP.SSL.CAINFO=%s\n" % servers.ca)
    return [
        Way("proxy", servers.http, plain, {"http_proxy": servers.proxy}, "#mode=bytes"),
        Way("proxy https", servers.https.replace("127.0.0.1", "localhost"), ca, {"https_proxy": servers.proxy}, "#mode=bytes"),
    ]


def of_s3(servers, folder, name, endpoint):
    settings = {"AWS_ACCESS_KEY_ID": servers.key, "AWS_SECRET_ACCESS_KEY": servers.secret, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    text = "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\nregion = us-east-1\n" % (servers.key, servers.secret)
    plain = home_of(folder, "plain")
    profile = home_of(folder, "aws-" + name)
    (profile / ".aws").mkdir(exist_ok=True)
    (profile / ".aws" / "credentials").write_text(text + text.replace("default", "other"))
    upload = (endpoint, settings)
    return [
        Way(name + " s3://", "s3://" + servers.bucket, plain, {**settings, "AWS_ENDPOINT_URL": endpoint}, upload=upload),
        Way(name + " path style", "%s/%s" % (endpoint, servers.bucket), plain, {**settings, "AWS_ENDPOINT_URL": endpoint}, "#mode=s3,bytes", upload),
        Way(name + " profile", "s3://" + servers.bucket, profile, {"AWS_ENDPOINT_URL": endpoint, "AWS_EC2_METADATA_DISABLED": "true"}, "#aws.profile=other", upload),
    ]


def uploaded(servers, files, names, ways):
    """Brings these files to each S3 server of the ways."""
    python = rig.python("boto3")
    if not python:
        raise rig.Skip("no Python with boto3")
    for endpoint, settings in {json.dumps(way.upload): way.upload for way in ways if way.upload}.values():
        rig.must([python, "-c", UPLOAD, endpoint, servers.bucket, files], rig.environment(None, NETWORK, **settings), input="\n".join(names))
