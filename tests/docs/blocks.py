# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of a page: what stands in fences, in order.

A comment of its own line before a fence, or before the first heading for all of the page, says what else there is to know:

    <!-- docs-test: not run: REASON -->        it cannot run here
    <!-- docs-test: run by FILE: WHAT -->      another test takes it from the page; FILE names the page
    <!-- docs-test: part of FILE -->           these lines stand in FILE, which is compiled elsewhere
    <!-- docs-test: needs NAME... -->          programs that must be there; for Python's packages python:NAME
    <!-- docs-test: in the source -->          of a page: its commands run in the folder of the source, and change nothing there
"""
import re
import textwrap
from dataclasses import dataclass, field

MARK = re.compile(r"\s*<!-- docs-test: (not run|run by|part of|needs|in the source):? ?(.*?) -->\s*$")
FENCE = re.compile(r"( *)(```+)\s*(\S*)(.*)$")
TITLE = re.compile(r'title="([^"]+)"')
# What is shown, and is neither a program nor a command.
SHOWN = {"text", "ini", "json", "yaml", "cdl", "csv", "toml"}
RUN = {"console", "sh", "python", "pycon", "c", "fortran", "rust"}


@dataclass
class Block:
    language: str
    title: str
    text: str
    line: int
    marks: dict = field(default_factory=dict)


@dataclass
class Page:
    path: object
    blocks: list
    marks: dict
    wrong: list

    def examples(self):
        """How many there are, those without a fence too."""
        return len(self.blocks) + sum("without a fence" in wrong for wrong in self.wrong)

    def mark(self, block, name):
        """What a mark of the block, or else of the page, says."""
        return block.marks.get(name) or self.marks.get(name)


def read(path):
    """The page at a path. `wrong` lists what cannot be an example that somebody runs."""
    page = Page(path, [], {}, [])
    marks, fence, begun, headed, before, listed = {}, None, None, False, "", False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = FENCE.match(line)
        if fence:
            if line.strip() == fence:
                text = textwrap.dedent("\n".join(begun.text)) + "\n"
                page.blocks.append(Block(begun.language, begun.title, text, begun.line, begun.marks))
                fence = None
            else:
                begun.text.append(line)
        elif found:
            fence, title = found[2], TITLE.search(found[4])
            begun = Block(found[3], title[1] if title else "", [], number, marks)
            marks = {}
            if begun.language not in SHOWN | RUN:
                page.wrong.append(f"line {number}: a block of {begun.language or 'no language'}; there are {', '.join(sorted(SHOWN | RUN))}")
        elif mark := MARK.match(line):
            (marks if headed else page.marks)[mark[1]] = mark[2]
        else:
            headed = headed or line.startswith("#")
            # What is indented below an item belongs to it.
            if line.strip() and not line.startswith(" "):
                listed = re.match(r"([-*]|\d+\.) ", line)
            if line.startswith("    ") and not before.strip() and not listed:
                page.wrong.append(f"line {number}: an example without a fence")
            if line.startswith(">>>"):
                page.wrong.append(f"line {number}: an example of Python without a fence")
            if line.strip():
                for name in marks:
                    page.wrong.append(f"line {number}: `{name}` is not followed by an example")
                marks = {}
        before = line
    # Of a page that says for all of it why it does not run, examples need no fence.
    if page.marks.keys() & {"not run", "run by"}:
        page.wrong = [wrong for wrong in page.wrong if not wrong.endswith("without a fence")]
    if fence:
        page.wrong.append("a fence is open at the end")
    return page


def commands(text):
    """(command, what is shown of its output or None) of a console block: lines after `$ `, with `> ` for those that go on."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif not found:
            raise ValueError(f"{line!r} comes before the first command")
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(shown) if shown else None) for command, shown in found]


def alike(shown, said):
    """Whether output is as shown; `...` stands for any text. How many spaces there are does not count: columns are as wide as their numbers."""
    def trimmed(text):
        return "\n".join(re.sub("[ \t]+", " ", line).rstrip() for line in text.strip("\n").splitlines())

    pattern = ".*".join(re.escape(part) for part in trimmed(shown).split("..."))
    return re.fullmatch(pattern, trimmed(said), re.S) is not None
