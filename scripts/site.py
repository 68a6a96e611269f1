# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes pages of the site from the documents as they are, for MkDocs (`hooks` of mkdocs.yml).

The documents are written to be read in the tree, too. So their links are those of the tree, and their lists those of GitHub:

    links      to documents outside of docs/ lead to pages of their own, under repository/; to sources, to the public tree
    lists      Markdown as MkDocs has it wants an empty line before a list or table, and four spaces before what is in an item
    examples   `>>>` outside of a fence, as doctest takes them, become a block
"""
import os
import re
import subprocess
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = "repository"
# Code stays as it is; the target of a link is its second part.
PIECE = re.compile(r"(`+)(?:.*?)\1|(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(<?)([^)\s>]+)(>?[^)]*\))")
ITEM = re.compile(r"( *)(?:[-*+]|\d+\.) ")


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


def on_files(files, config):
    """Documents outside of docs/ are pages, too."""
    for name in tracked("*.md"):
        if not name.startswith("docs/") and (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            files.append(File.generated(config, f"{OUTSIDE}/{name}", content=(ROOT / name).read_text()))
    return files


def origin(page):
    """Where a page's document is in the tree."""
    if page.startswith(OUTSIDE + "/"):
        return page[len(OUTSIDE) + 1 :]
    return "docs/" + page


def place(name):
    """The document of the site that has a file of the tree, or None."""
    if name.startswith("docs/"):
        return name[len("docs/") :]
    return f"{OUTSIDE}/{name}" if name.endswith(".md") else None


def target(page, link, source):
    """A link of a document, as the site needs it."""
    if re.match(r"[a-z]+:|#", link):
        return link
    name, sharp, part = link.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(origin(page)), name))
    if (ROOT / path).is_dir():
        path = path + "/README.md" if (ROOT / path / "README.md").exists() else path
    there = place(path)
    if there and (ROOT / path).is_file():
        return os.path.relpath(there, os.path.dirname(page) or ".") + sharp + part
    return f"{source}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"


def on_page_markdown(markdown, page, config, files):
    """One document, line by line."""
    source = config["extra"]["source"]
    name = page.file.src_uri
    lines, fence, example = [], "", False

    def link(found):
        return found[0] if found[1] else found[2] + target(name, found[3], source) + found[4]

    for line in markdown.splitlines():
        if example and (not line.strip() or line.startswith("```")):
            lines.append("```")
            example = False
        opening = re.match(r"\s*(```+|~~~+)", line)
        if fence or opening:
            if not fence:
                fence = opening[1]
            elif line.strip() == fence:
                fence = ""
            lines.append(line)
            continue
        if example or line.startswith(">>>"):
            if not example:
                lines += ["", "```pycon"]
                example = True
            lines.append(line)
            continue
        if line.startswith("    "):
            lines.append(line)
            continue
        before = lines[-1] if lines else ""
        item = ITEM.match(line)
        if item and 0 < len(item[1]) < 4:
            line = "    " + line.lstrip()
        begins = item and not item[1] and not ITEM.match(before) and not before.startswith("  ")
        if before.strip() and (begins or (line.startswith("|") and not before.startswith("|"))):
            lines.append("")
        lines.append(PIECE.sub(link, line))
    if example:
        lines.append("```")
    return "\n".join(lines) + "\n"
