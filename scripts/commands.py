#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes docs/reference/commands.md: what each command of dist/ says of itself.

    scripts/commands.py            writes it
    scripts/commands.py --check    says whether it is as the commands have it: exit 1 where not
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import tool_pages

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "commands.md"
ZONDA = Path(os.environ.get("ZONDA_COMMAND") or Path(os.environ.get("ZONDA_PREFIX") or ROOT / "dist") / "bin" / "zonda")
HEAD = """# Commands

What each command says of itself (`zonda help COMMAND`), and the tools with netCDF-C's names. Manual pages have the same: `man zonda-copy`, `man ncdump`.
[The guide](../guides/command-line.md) shows them at work; [what works](../status/cli.md) has all details and the differences from netCDF-C's tools.

<!-- Made by scripts/commands.py. -->
"""


def said(*words):
    env = {name: value for name, value in os.environ.items() if not name.startswith("ZONDA_")}
    return subprocess.run([ZONDA, *words], env=env, check=True, capture_output=True, text=True).stdout


def block(text):
    return "```text\n" + "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n```\n"


def tool(name, about):
    """A tool by its table."""
    parts = [f"## `{name}`", about.about[0].upper() + about.about[1:] + ".", *about.text]
    wide = max(len(option.name + option.value) for option in about.options) + 3
    lines = [f"{name} {about.synopsis}", ""]
    for option in about.options:
        value = option.value if option.joined or not option.value else " " + option.value
        words = f" ({', '.join(option.words)})" if option.name == "-k" and option.words else ""
        lines.append(f"  {option.name + value:{wide}}{option.about}{words}")
    if about.examples:
        lines += ["", "Examples:", *("  " + example for example in about.examples)]
    return "\n\n".join([*parts, block("\n".join(lines)), "Exit status: " + about.statuses[0]])


def made():
    overview = said("--help")
    commands = re.findall(r"^  ([a-z]+) +\S", overview[overview.index("Commands:") : overview.index("Options:")], re.M)
    parts = [HEAD, "## `zonda`\n", block(overview)]
    for name in commands:
        if name not in ("help", "iod"):
            parts += [f"## `zonda {name}`\n", block(said(name, "--help"))]
    parts += [tool(name, about) + "\n" for name, about in tool_pages.TOOLS.items()]
    return "\n".join(parts)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    text = made()
    if not sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what the commands say: scripts/commands.py makes it anew")


if __name__ == "__main__":
    main()
