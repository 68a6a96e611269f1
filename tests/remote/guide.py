# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of docs/guides/remote.md: run as they stand, but for the names of hosts and the logins, which are those of the tests' servers."""
import os
import re
import subprocess

import places
import rig
from rig import Wrong

PAGE = rig.ROOT / "docs" / "guides" / "remote.md"
CDL = """netcdf model { dimensions: time = UNLIMITED ; x = 400 ; variables: float temp(time, x) ; temp:units = "K" ; data: temp = %s ; }"""


def examples(page=PAGE):
    """(language, number, text) of the blocks that run."""
    found = re.findall(r"^```(sh|python|c)\n(.*?)^```", page.read_text(), re.M | re.S)
    return [(language, number, text) for number, (language, text) in enumerate(found, 1)]


def substituted(bench, text):
    """`bench` is None where the text is one that runs as it stands."""
    if bench is None:
        return text
    s = bench.servers
    text = re.sub(r"https://data\.example\.org/login", s.https_login.replace("127.0.0.1", "localhost"), text)
    text = text.replace("https://data.example.org", s.https.replace("127.0.0.1", "localhost"))
    text = text.replace("me:secret", "%s:%s" % (s.user, s.password))
    if "versitygw" in s.running:
        text = text.replace("https://s3.example.org", s.s3_endpoint).replace("s3://bucket/", "s3://%s/" % s.bucket)
        text = text.replace("AWS_ACCESS_KEY_ID=key", "AWS_ACCESS_KEY_ID=" + s.key).replace("SECRET_ACCESS_KEY=secret", "SECRET_ACCESS_KEY=" + s.secret)
    return text


def shell(bench, folder, env, text):
    if bench and "s3://" in text and "versitygw" not in bench.servers.running:
        raise rig.Skip("no versitygw")
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", substituted(bench, text)], env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise Wrong("it ends with %s: %s" % (done.returncode, done.stderr[-400:]))
    return done.stdout


def python(bench, folder, env, text):
    interpreter = rig.python("zonda", "xarray")
    if not interpreter:
        raise rig.Skip("no Python with zonda and xarray: scripts/wheel.sh, and pip install")
    done = subprocess.run([interpreter, "-c", substituted(bench, text)], env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not done.stdout.strip():
        raise Wrong("it ends with %s: %s" % (done.returncode, done.stderr[-400:]))


def in_c(bench, folder, env, text):
    """The lines of C in a program, which opens the file."""
    source = "#include <netcdf.h>\n#include <zonda.h>\n#include <stdio.h>\nint main(void) {\n%s\nreturn status; }\n" % substituted(bench, text)
    (folder / "example.c").write_text(source)
    rig.must([rig.compile_c(folder / "example", folder / "example.c")], {**env, "LD_LIBRARY_PATH": str(rig.LIBDIR)})


def all_of(bench):
    if "nginx" not in bench.servers.running:
        bench.counts.skip("guide", "no nginx")
        return
    folder = bench.scratch / "guide"
    folder.mkdir()
    (folder / "model.cdl").write_text(CDL % ", ".join(str(n) for n in range(4000)))
    rig.must([rig.BIN / "ncgen", "-4", "-o", bench.files / "model.nc", folder / "model.cdl"], rig.environment(rig.LIBDIR))
    (bench.files / "model.nc").chmod(0o644)
    home = places.home_of(bench.homes, "guide", ncrc="HTTP.SSL.CAINFO=%s\n" % bench.servers.ca)
    path = "%s:%s" % (rig.BIN, os.environ.get("PATH", os.defpath))
    env = rig.environment(None, places.NETWORK, HOME=home, PATH=path, AWS_EC2_METADATA_DISABLED="true")
    for language, number, text in examples():
        name = "guide %d %s" % (number, language)
        if bench.options.wants(name):
            bench.counts.attempt(name, {"sh": shell, "python": python, "c": in_c}[language], bench, folder, env, text)
