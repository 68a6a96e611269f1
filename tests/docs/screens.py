#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The site as a browser shows it: pictures of pages at two widths, and none is wider than the window.

    screens.py [--only REGEX]      pictures go to out/screens; without Chromium or MkDocs all is skipped

Each page is shown at 1280 and 400 pixels, and once more without scripts. The pictures are for people to look at; what is checked is that the page does not
scroll sideways, that its heading is there, that text fills it without scripts too, that Chromium asked no other host for anything, and that the search finds
what there is.
"""
import json
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import rig  # noqa: E402
import site_built  # noqa: E402

OUT = rig.ROOT / "out" / "screens"
WIDTHS = (1280, 400)
PAGES = ("index", "start", "install", "tour", "tutorial", "limits", "from-h5py", "guides/settings", "guides/mpi", "guides/python", "reference/c", "reference/commands", "reference/python", "status/speed", "dev/messages")
PROBE = """<script>
addEventListener("load", () => {
  const root = document.documentElement, own = location.protocol;
  root.dataset.probe = JSON.stringify({inner: innerWidth, wide: root.scrollWidth, heading: document.querySelector("h1")?.innerText ?? "",
    far: performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith(own) && !n.startsWith("data:") && !n.startsWith("blob:")),
    widest: [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("pre, .md-typeset__scrollwrap, .md-typeset__table, .highlight, svg, nav")).slice(0, 3).map(e => e.tagName + " " + e.textContent.slice(0, 40))});
});
</script></body>"""

# Opens the search as a click does, and types a word.
SEARCH = """<script>
addEventListener("load", () => {
  const field = document.querySelector(".md-search__input");
  setTimeout(() => { document.querySelector("#__search").click(); field.value = "WORD"; field.dispatchEvent(new Event("input", {bubbles: true})); field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true})); }, 500);
  setTimeout(() => { document.documentElement.dataset.found = document.querySelectorAll(".md-search-result__item").length; }, 5000);
});
</script></body>"""


def chromium():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def show(browser, profile, page, width, *how):
    """Runs the browser on a page, once."""
    return rig.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--allow-file-access-from-files",
                    "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", f"--window-size={width},1600", "--virtual-time-budget=3000", *how, page.as_uri()],
                   rig.environment(), seconds=120)


def one(browser, scratch, site, name, width):
    page = site / f"{name}.html"
    # A copy with a script that measures; the picture is of the page itself.
    probe = page.with_name(f"probe-{width}-{page.name}")
    probe.write_text(page.read_text().replace("</body>", PROBE))
    said = show(browser, scratch / "profile", probe, width, "--dump-dom").stdout
    probe.unlink()
    found = re.search(r'data-probe="([^"]*)"', said)
    if not found:
        raise rig.Wrong("the page did not load: %s" % said[:300])
    measured = json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    show(browser, scratch / "profile", page, width, f"--screenshot={OUT / (name.replace('/', '-') + f'-{width}.png')}")
    if measured["far"]:
        raise rig.Wrong(f"asks other hosts: {measured['far'][:3]}")
    if measured["wide"] > measured["inner"] + 1:
        raise rig.Wrong(f"{measured['wide']} pixels wide in {measured['inner']}: {measured['widest']}")
    if not measured["heading"]:
        raise rig.Wrong("no heading")


def without_scripts(browser, scratch, site, name):
    """A picture of the page with its scripts taken out; one that is empty then makes a small file of one colour."""
    picture = OUT / (name.replace("/", "-") + "-no-script.png")
    page = site / f"{name}.html"
    plain = page.with_name("plain-" + page.name)
    plain.write_text(re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.S))
    show(browser, scratch / "profile", plain, WIDTHS[0], f"--screenshot={picture}")
    plain.unlink()
    if not picture.exists() or picture.stat().st_size < 20_000:
        raise rig.Wrong("there is nearly nothing without scripts")


def searched(browser, scratch, site):
    """A page of a folder, which no server serves, can be searched, too."""
    page = site / "guides" / "c.html"
    for word, least in (("throttle", 1), ("zzqqxy", 0)):
        probe = page.with_name("search-" + page.name)
        probe.write_text(page.read_text().replace("</body>", SEARCH.replace("WORD", word)))
        found = re.search(r'data-found="(\d+)"', show(browser, scratch / "profile", probe, WIDTHS[0], "--virtual-time-budget=9000", "--dump-dom").stdout)
        probe.unlink()
        if not found or (int(found[1]) > 0) != (least > 0):
            raise rig.Wrong(f"{word} is found {found and found[1]} times")


def main():
    options, counts = rig.arguments(rig.parser(__doc__)), rig.Counts()
    browser = chromium()
    if not browser:
        raise rig.Skip("no Chromium")
    if not site_built.BUILDER.exists():
        raise rig.Skip("no MkDocs: scripts/setup.sh --docs")
    OUT.mkdir(parents=True, exist_ok=True)
    with rig.scratch() as scratch:
        site = scratch / "site"
        done = site_built.build(site)
        if done.returncode:
            raise rig.Setup("the site cannot be built: " + (done.stdout + done.stderr)[-1000:])
        for name in PAGES:
            if not options.wants(name):
                continue
            for width in WIDTHS:
                counts.attempt(f"{name} at {width}", one, browser, scratch, site, name, width)
            counts.attempt(f"{name} without scripts", without_scripts, browser, scratch, site, name)
        if options.wants("search"):
            counts.attempt("search", searched, browser, scratch, site)
    print(f"pictures are in {OUT.relative_to(rig.ROOT)}")
    return counts


if __name__ == "__main__":
    rig.main(main)
