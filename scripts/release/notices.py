#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes down what others wrote of the files that are released: their licences, and a bill of materials.

    notices.py FOLDER [--target TRIPLE] [--package CRATE ...]

FOLDER gets THIRD-PARTY-NOTICES.txt, zonda.cdx.json (CycloneDX 1.5), LICENSE-MIT and LICENSE-APACHE. What is listed are the
crates that cargo links into zonda-capi, zonda-cli, zonda-python and zonda-tls-engine, without those that only run while something is built, and Rust's
own library. The texts are those that the crates bring along; a crate without one, or under a licence that is not known here, is an
error, and nothing is written.
"""
import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("zonda-capi", "zonda-cli", "zonda-python", "zonda-tls-engine")
# Licences that may be in what we give away. An expression needs one of these in each of its alternatives that counts.
KNOWN = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6",
}  # fmt: skip
# What our own crates have of others, which is no crate: the folder of a file, and the terms beside it. Each folder with terms has a row.
ENCLOSED = (
    {
        "folder": "crates/zonda-plot/fonts", "name": "DejaVu Sans", "version": "2.37", "terms": "LICENSE", "licence": "Bitstream-Vera",
        "page": "https://dejavu-fonts.github.io", "description": "The font of pictures, a part of its letters",
    },
    {
        "folder": "crates/zonda-plot/coast", "name": "Natural Earth", "version": "4.1", "terms": "NOTICE", "licence": "public domain; ISC",
        "page": "https://www.naturalearthdata.com", "description": "Coastlines at 1:110 million, in the public domain, by way of world-atlas 2.0.2 (ISC)",
    },
)  # fmt: skip
TEXT = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense|copyright)")
RULE = "=" * 78
# What Rust brings for musl, and files for it have in them: name, licence, what it asks to be said.
OF_MUSL = (
    ("musl", "MIT", "the C library in programs that need no shared library, Copyright 2005-2020 Rich Felker, et al., under the MIT licence\n"
     "(https://git.musl-libc.org/cgit/musl/tree/COPYRIGHT), whose words are those of LICENSE-MIT"),
    ("llvm-libunwind", "Apache-2.0 WITH LLVM-exception", "what unwinds panics, by the LLVM project's contributors, under the Apache License 2.0 with LLVM's exceptions\n"
     "(https://llvm.org/LICENSE.txt)"),
)  # fmt: skip


def cargo(*arguments):
    return subprocess.run(("cargo", *arguments), cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(target, packages):
    """Name and version of each crate that is linked into the packages, our own included."""
    chosen = [word for package in packages for word in ("-p", package)]
    text = cargo("tree", "--locked", "--target", target, *chosen, "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    found = set()
    for line in text.splitlines():
        if match := re.match(r"(\S+) v(\S+)", line):
            found.add(match.groups())
    return found


def acceptable(expression):
    """Whether all that counts of an SPDX expression is known: one of each `OR`, all of each `AND`."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def any_of():
        answer = all_of()
        while words and words[0] == "OR":
            words.pop(0)
            answer = all_of() or answer
        return answer

    def all_of():
        answer = one()
        while words and words[0] == "AND":
            words.pop(0)
            answer = one() and answer
        return answer

    def one():
        word = words.pop(0)
        if word == "(":
            answer = any_of()
            words.pop(0)
            return answer
        if words and words[0] == "WITH":
            word = " ".join((word, words.pop(0), words.pop(0)))
        return word in KNOWN

    return any_of()


def texts(package):
    """The files of licences of a crate, and of the C library it may have in a folder."""
    folder = Path(package["manifest_path"]).parent
    top = [path for path in folder.iterdir() if path.is_file() and TEXT.match(path.name)]
    if any("MIT" in path.name.upper() for path in top) and re.search(r"\bMIT\b", package["license"] or "") and " AND " not in package["license"]:
        # Others are offered beside it, and this one is short.
        top = [path for path in top if "MIT" in path.name.upper() or re.match(r"(?i)notice|copyright", path.name)]
    below = []
    if package["links"] or package["name"].endswith("-sys"):
        below = [path for path in folder.glob("*/*") if path.is_file() and TEXT.match(path.name)]
    return sorted(top) + sorted(below)


def notices(packages, rust, target):
    """The text of THIRD-PARTY-NOTICES.txt."""
    groups, lines = {}, []
    for package in packages:
        label = f"{package['name']} {package['version']}"
        if not package["license"] or not acceptable(package["license"]):
            raise SystemExit(f"notices.py: {label} is under {package['license']}, which is not among the licences known here")
        found = texts(package)
        if not found:
            raise SystemExit(f"notices.py: {label} brings no text of its licence ({package['license']})")
        lines.append(f"{label:32} {package['license']:44} {package['repository'] or ''}".rstrip())
        for path in found:
            text = path.read_text(errors="replace").strip()
            groups.setdefault(" ".join(text.split()), (text, []))[1].append(label)
    for part in enclosed():
        label = f"{part['name']} {part['version']}"
        lines.append(f"{label:32} {part['licence']:44} {part['page']}")
        groups[part["folder"]] = ((ROOT / part["folder"] / part["terms"]).read_text().strip(), [f"{label} ({part['description']})"])
    own = [f"{RULE}\n{', '.join(dict.fromkeys(users))}\n{RULE}\n\n{text}\n" for text, users in groups.values()]
    return (
        "Zonda is under the MIT licence or the Apache License 2.0 (LICENSE-MIT, LICENSE-APACHE), as you choose.\n"
        "Its libraries and programs contain the work of others, which is listed here with the texts of its licences.\n\n"
        f"Rust's standard library {rust}, by the Rust project's developers, is under MIT OR Apache-2.0\n"
        "(https://www.rust-lang.org/policies/licenses).\n\n"
        + "".join(f"{name}: {about}\n\n" for name, _, about in (OF_MUSL if "musl" in target else ()))
        + "\n".join(lines) + "\n\n" + "\n".join(own)
    )


def enclosed():
    """What our own crates have of others. A folder with terms of which nothing is known here is an error, as is a row without its folder."""
    found = {str(path.relative_to(ROOT)) for kind in ("LICENSE*", "NOTICE*") for path in ROOT.glob(f"crates/*/*/{kind}")}
    known = {f"{part['folder']}/{part['terms']}" for part in ENCLOSED}
    if found != known:
        raise SystemExit(f"notices.py: terms of what others made, by the table of this script or by the files, and not by both: {', '.join(sorted(found ^ known))}")
    return ENCLOSED


def checksums():
    """What the lock file says of each crate's archive."""
    text = (ROOT / "Cargo.lock").read_text()
    blocks = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]+)"', text)
    return {(name, version): digest for name, version, digest in blocks}


def expression(package):
    return (package["license"] or "").replace("/", " OR ")


def bill(own, others, edges, rust, version, target):
    """The bill of materials, which depends on nothing but its contents."""
    digests = checksums()

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(package, kind):
        made = {
            "type": kind, "bom-ref": reference(package), "name": package["name"], "version": package["version"],
            "purl": reference(package), "licenses": [{"expression": expression(package)}],
        }  # fmt: skip
        if package["description"]:
            made["description"] = package["description"].strip()
        if digest := digests.get((package["name"], package["version"])):
            made["hashes"] = [{"alg": "SHA-256", "content": digest}]
        if package["repository"]:
            made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return made

    def data(part):
        terms = [{"license": {"id": word}} if re.fullmatch(r"[A-Za-z0-9.-]+", word) else {"license": {"name": word}} for word in part["licence"].split("; ")]
        name = f"pkg:generic/{part['name'].lower().replace(' ', '-')}@{part['version']}"
        return {
            "type": "data", "bom-ref": name, "name": part["name"], "version": part["version"], "purl": name, "description": part["description"],
            "licenses": terms, "externalReferences": [{"type": "website", "url": part["page"]}],
        }  # fmt: skip

    std = f"pkg:generic/rust-std@{rust}"
    top = f"pkg:generic/zonda@{version}"
    wanted = {package["id"]: package for package in (*own, *others)}
    dependencies = [{"ref": top, "dependsOn": sorted(reference(package) for package in own if package["name"] in PACKAGES)}]
    for name, package in sorted(wanted.items(), key=lambda item: reference(item[1])):
        below = {reference(wanted[other]) for other in edges[name] if other in wanted and other != name}
        dependencies.append({"ref": reference(package), "dependsOn": sorted(below | {std})})
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library", "bom-ref": top, "name": "zonda", "version": version, "purl": top,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }
        },
        "components": [component(package, "library") for package in (*own, *others)] + [
            {"type": "library", "bom-ref": std, "name": "rust-std", "version": rust, "purl": std, "licenses": [{"expression": "MIT OR Apache-2.0"}]}
        ] + [
            {"type": "library", "bom-ref": f"pkg:generic/{name}?of=rust-std@{rust}", "name": name, "licenses": [{"expression": licence}]}
            for name, licence, _ in (OF_MUSL if "musl" in target else ())
        ] + [data(part) for part in enclosed()],
        "dependencies": dependencies,
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
    document["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", help="what is built for (this machine)")
    parser.add_argument("--package", action="append", help="a crate that is released (all)")
    options = parser.parse_args()
    about = subprocess.run(("rustc", "-vV"), check=True, stdout=subprocess.PIPE, text=True).stdout
    rust = re.search(r"^release: (.*)$", about, re.M).group(1)
    target = options.target or re.search(r"^host: (.*)$", about, re.M).group(1)
    packages = options.package or PACKAGES

    names = linked(target, packages)
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    known = sorted((p for p in metadata["packages"] if (p["name"], p["version"]) in names), key=lambda p: (p["name"], p["version"]))
    own = [package for package in known if package["source"] is None]
    others = [package for package in known if package["source"] is not None]
    if not others or len(known) != len(names):
        raise SystemExit(f"notices.py: of {len(names)} crates that are linked, {len(known)} are known to cargo metadata")
    edges = {node["id"]: node["dependencies"] for node in metadata["resolve"]["nodes"]}
    text = notices(others, rust, target)
    document = bill(own, others, edges, rust, own[0]["version"], target)

    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "THIRD-PARTY-NOTICES.txt").write_text(text)
    (options.folder / "zonda.cdx.json").write_text(json.dumps(document, indent=1) + "\n")
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        shutil.copyfile(ROOT / name, options.folder / name)


if __name__ == "__main__":
    sys.exit(main())
