"""Which tests there are, what each needs, and which belong together.

A test is named `folder/test`; the same test compiled without netCDF-4 is `folder/test@classic`.
"""
import os
import re
import subprocess
from dataclasses import dataclass, field

FOLDERS = {
    "full": ["nc_test", "nctest", "unit_test", "ncgen3", "ncdump", "examples/C", "nc_test4",
             "ncdap_test", "dap4_test"],
    "classic": ["nc_test", "nctest", "unit_test", "ncgen3", "ncdump", "examples/C"],
}
TOOLS = ("ncdump", "ncgen", "ncgen3", "nccopy")

# Several GiB are really written (minutes each); the other large-file tests make sparse files.
LARGE = {"tst_large", "tst_large2", "tst_large_cdf5", "run_diskless2.sh"}

# What upstream runs only with servers it has, or only builds.
NOT_TESTS = {"findtestserver", "findtestserver4", "pingurl", "pingurl4", "ocprint"}

# Programs that a script finds through a variable of test_common.sh.
HIDDEN_PROGRAMS = {"ncdump/testpathcvt.sh": ["ncpathcvt"]}

# Files made by one test and read by another, where the upstream makefile does not say so because
# it runs a folder in one piece and in order.
NEEDS = {
    "nctest/compare_test_files.sh": ["nctest"],
}


@dataclass
class Test:
    folder: str
    test: str                               # as the makefile names it
    config: str
    needs: list = field(default_factory=list)   # tests of the same folder that must run before
    programs: list = field(default_factory=list)    # (folder, program) to be compiled
    script: str = ""                        # path, for shell scripts
    plugins: bool = False                   # loads HDF5 filter plugins

    @property
    def name(self):
        return "%s/%s%s" % (self.folder, self.test, "@classic" if self.config == "classic" else "")

    @property
    def large(self):
        return self.test in LARGE


def make_variables(build, folder, names):
    """Values of make variables of one folder, without letting make regenerate anything."""
    rule = "zonda-print: ; " + " ; ".join(
        ("@" if i == 0 else "") + "echo 'V:%s:' $(%s)" % (n, n) for i, n in enumerate(names))
    env = dict(os.environ)
    env.pop("MAKEFLAGS", None)
    r = subprocess.run(["make", "-s", "--no-print-directory", "--eval", rule, "zonda-print",
                        "AUTOMAKE=:", "AUTOCONF=:", "ACLOCAL=:", "AUTOHEADER=:"],
                       cwd=os.path.join(build, folder), env=env, capture_output=True, text=True)
    values = dict(re.findall(r"^V:(\w+): ?(.*)$", r.stdout, re.M))
    return [list(dict.fromkeys(values.get(n, "").split())) for n in names]


def declared_needs(src, folder):
    """`a.log: b.log c.log` lines of the upstream makefile, by base name without `.sh`."""
    with open(os.path.join(src, folder, "Makefile.am")) as f:
        text = f.read().replace("\\\n", " ")
    return {m[1]: re.findall(r"(\S+)\.log", m[2])
            for m in re.finditer(r"^(\S+)\.log:(.*)$", text, re.M)}


class Plan:
    """All tests of both configurations, in upstream's order."""

    def __init__(self, src, builds):
        self.src, self.builds = src, builds
        self.sources = {}                   # (config, folder, program) -> source files
        self.tests = {}                     # name -> Test
        for config in ("full", "classic"):
            for folder in FOLDERS[config]:
                self._read_folder(config, folder)

    def _read_folder(self, config, folder):
        build = self.builds[config]
        tests, checks, others = make_variables(
            build, folder, ["TESTS", "check_PROGRAMS", "noinst_PROGRAMS"])
        programs = [p for p in dict.fromkeys(checks + others) if p not in TOOLS and p not in NOT_TESTS]
        variables = [re.sub(r"\W", "_", p) + "_SOURCES" for p in programs]
        found = make_variables(build, folder, variables) if programs else []
        for p, files in zip(programs, found):
            self.sources[(config, folder, p)] = files or [p + ".c"]
        declared = declared_needs(self.src, folder)
        stems = {re.sub(r"\.sh$", "", t): t for t in tests}
        texts = {}
        for t in tests:
            test = Test(folder, t, config)
            test.needs = [stems[n] for n in declared.get(re.sub(r"\.sh$", "", t), []) if n in stems]
            test.needs += [n for n in NEEDS.get(folder + "/" + t, []) if n in tests]
            if t.endswith(".sh"):
                test.script = os.path.join(self.src, folder, t)
                if not os.path.exists(test.script):
                    test.script = os.path.join(build, folder, t)
                with open(test.script, errors="replace") as f:
                    texts[t] = f.read()
                test.programs = self._used_programs(config, folder, texts[t])
                test.programs += [(folder, p) for p in HIDDEN_PROGRAMS.get(folder + "/" + t, [])]
                if re.search(r"\bavail\s", texts[t]):       # a function of test_common.sh
                    test.programs.append(("ncdump", "ncfilteravail"))
                test.plugins = config == "full" and "findplugin" in texts[t]
            else:
                test.programs = [(folder, t)]
            self.tests[test.name] = test
        # Built upstream but run by no makefile rule: still a test of the library.
        scripts = " ".join(texts.values())
        for p in checks:
            if p in programs and p not in tests and folder != "ncdump" \
                    and not re.search(r"\b%s\b" % re.escape(p), scripts):
                test = Test(folder, p, config, programs=[(folder, p)])
                test.plugins = config == "full" and folder == "nc_test4"
                self.tests[test.name] = test

    def _used_programs(self, config, folder, text):
        """The programs a script names: of its own folder, and of others by their path."""
        used = []
        for (c, f, p) in self.sources:
            if c != config:
                continue
            word = re.escape(p) if f == folder else re.escape(f + "/" + p)
            if re.search(r"(?<![\w-])%s(?![\w-])" % word, text):
                used.append((f, p))
        return used

    def chains(self, names):
        """Groups of tests to run in order in one folder; groups are independent of each other.

        A test that is only needed by a wanted one is part of the chain but not of `names`."""
        order = {n: i for i, n in enumerate(self.tests)}
        group = {}                          # name -> its group, a shared set

        def add(name):
            if name in group:
                return group[name]
            mine = group[name] = {name}
            t = self.tests[name]
            suffix = "@classic" if t.config == "classic" else ""
            for need in t.needs:
                other = add("%s/%s%s" % (t.folder, need, suffix))
                if other is not mine:
                    mine |= other
                    for n in other:
                        group[n] = mine
            return mine

        for n in names:
            add(n)
        unique = {id(g): g for g in group.values()}
        return [sorted(g, key=order.get) for g in sorted(unique.values(), key=lambda g: min(map(order.get, g)))]
