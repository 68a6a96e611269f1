# SPDX-License-Identifier: MIT OR Apache-2.0
"""The site as it was built: links, anchors, and what a browser would load."""
import html.parser
import os
import re
import urllib.parse
from pathlib import Path

import rig

BUILDER = rig.ROOT / "out" / "docs" / "bin" / "mkdocs"
SITE = rig.ROOT / "out" / "site"
# What a browser fetches by itself.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data")}


class Reader(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loads, self.words, self.hidden = set(), [], [], 0, 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag in ("script", "style", "template"):
            self.hidden += 1
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        for key, value in attributes:
            if (tag, key) in LOADED and value and found.get("rel") not in ("canonical", "prev", "next"):
                self.loads.append(value)

    def handle_endtag(self, tag):
        if tag in ("script", "style", "template"):
            self.hidden -= 1

    def handle_data(self, data):
        if not self.hidden:
            self.words += len(data.split())


def build(folder):
    """Makes the site; a warning is a failure."""
    return rig.run([BUILDER, "build", "--strict", "--site-dir", folder, "--config-file", rig.ROOT / "mkdocs.yml"], {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"})


def check(_, counts, scratch):
    if not BUILDER.exists():
        counts.skip("site", "no MkDocs: scripts/setup.sh --docs")
        return
    folder = scratch / "site"
    done = build(folder)
    if not counts.check("mkdocs build", (done.stdout + done.stderr)[-4000:] if done.returncode else None):
        return
    pages = {path: Reader(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(folder)
        counts.check(f"site {name}", "; ".join(wrong(folder, path, page, pages)))
    for path in folder.rglob("*.css"):
        far = [found for found in re.findall(r"url\(['\"]?([^)'\"]+)|@import ['\"]([^'\"]+)", path.read_text()) if re.match("(https?:)?//", found[0] or found[1])]
        counts.check(f"site {path.relative_to(folder)}", f"loads {far}" if far else None)


def wrong(folder, path, page, pages):
    for link in page.loads:
        if re.match(r"(https?:)?//", link):
            yield f"loads {link}"
    for link in [*page.links, *page.loads]:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc or path.name == "404.html":
            continue
        place = Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path))) if parts.path else path
        if place.is_dir():
            place = place / "index.html"
        if not place.exists() or folder not in place.parents:
            yield f"{link} leads nowhere"
        elif parts.fragment and place in pages and urllib.parse.unquote(parts.fragment) not in pages[place].names:
            yield f"{link}: no such heading"
    # Without a script the text has to be there.
    if page.words < 40 and path.name != "404.html":
        yield f"only {page.words} words without a script"
