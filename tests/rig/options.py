# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options that runners have in common. How much of it is run is one of three marks:

    --quick     what takes seconds: something of everything that a change is likely to break
    (full)      what `make test` runs, a sample where all would be long
    --long      everything

A runner says which of its parts belong to which mark, and takes its numbers by the mark: `options.by(20, 200, 5000)`.
"""
import argparse
import re

QUICK, FULL, LONG = "quick", "full", "long"
ORDER = (QUICK, FULL, LONG)


class Options(argparse.Namespace):
    """What was asked for."""

    mark = FULL

    @property
    def long(self):
        return self.mark == LONG

    def by(self, quick, full, long):
        """The one of the three that belongs to the mark."""
        return {QUICK: quick, FULL: full, LONG: long}[self.mark]

    def wants(self, name):
        """Whether what has this name was asked for by --only."""
        return re.search(self.only or "", name) is not None

    def chosen(self):
        """The parts to be run: those of --parts, else those that belong to the mark."""
        if self.parts is not None:
            return self.parts
        return [part for part, mark in self.marks.items() if ORDER.index(mark) <= ORDER.index(self.mark)]


def expression(text):
    try:
        re.compile(text)
    except re.error as why:
        raise argparse.ArgumentTypeError("no regular expression: %s" % why) from None
    return text


def parser(about, parts=None, seed=None, only="what has such a name (a regular expression)"):
    """A parser with --quick, --long and --only; with --parts and --seed where they are given.

    `parts` has the mark of each part by its name, `seed` is the first one where none was asked for.
    """
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    marks = made.add_mutually_exclusive_group()
    marks.add_argument("--quick", dest="mark", action="store_const", const=QUICK, default=FULL, help="what takes seconds")
    marks.add_argument("--long", dest="mark", action="store_const", const=LONG, help="everything")
    if only:
        made.add_argument("--only", default="", metavar="REGEX", type=expression, help=only)
    if parts:
        def list_of_parts(text):
            unknown = set(text.split(",")) - set(parts)
            if unknown:
                raise argparse.ArgumentTypeError("no part %s; there are %s" % (", ".join(sorted(unknown)), ", ".join(parts)))
            return text.split(",")

        made.add_argument("--parts", metavar="LIST", type=list_of_parts, help="of " + ",".join(parts))
        made.set_defaults(marks=parts)
    if seed is not None:
        made.add_argument("--seed", type=int, default=seed, help="other random choices (%(default)s)")
    return made


def arguments(made, words=None):
    """The options of a parser, by its own words or those of the command line."""
    return made.parse_args(words, Options())
