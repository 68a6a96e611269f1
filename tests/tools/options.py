#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Options that have no effect on a file. Each option of each verb that looks at files, on a classic and a netCDF-4
file, with a name that is not there, a dimension that is not there, a value out of range, or where it cannot apply:
the exit status is not 0, or a line on standard error says that it has no effect. And none of them says so where
they have one.

    tests/tools/options.py [--only REGEX]

tests/rig/places.py has the settings.
"""

import os
import re
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
import rig  # noqa: E402

CDL = """netcdf f {
dimensions: %s x = 40; y = 100; n = 3;
variables:
    float v(%s y, x); v:units = "m"; v:scale_factor = 2.f;
    int i(y); char c(n); double x(x); short s; %s
data:
    i = 1, 2, 3; c = "abc"; s = 5;
    x = %s;
}
"""
X = ", ".join(str(n) for n in range(40))
FILES = {
    "classic": ("-3", CDL % ("", "", "", X)),
    "nc4": ("-4", CDL % ("", "", "string t(n);", X)),
    "records3": ("-3", CDL % ("r = unlimited;", "r,", "", X)),
    "records4": ("-4", CDL % ("r = unlimited;", "r,", "string t(n);", X)),
    "text": ("-4", "netcdf f { dimensions: n = 3; variables: string t(n); int k; }"),
}
BOTH = ["classic", "nc4"]
# Files, arguments (F: the file, T: a target), and what is said; "" for anything.
SILENT = None
TABLE = [
    # A name that is not there.
    (BOTH, "copy -v nosuch F T", "no variable nosuch"),
    (BOTH, "copy -x nosuch F T", "no variable nosuch"),
    (BOTH, "copy -g /nosuch F T", "no group"),
    (BOTH, "copy -k nosuch F T", "expected "),
    (["nc4"], "copy -c nosuch/5 F T", "no such dimension"),
    (["nc4"], "copy -c v:nosuch/5 F T", "no such dimension"),
    (["nc4"], "copy -c nosuch:x/5 F T", "nosuch"),
    (["nc4"], "copy --contiguous nosuch F T", "nosuch"),
    (["nc4"], "copy -F nosuch:zstd F T", "nosuch"),
    (["nc4"], "copy -F nosuch F T", "no filter is called"),
    (["nc4"], "copy -F 60000 F T", ""),
    (["nc4"], "copy --quantize nosuch:bitgroom,3 F T", "nosuch"),
    (["nc4"], "copy --quantize nosuch,3 F T", "expected "),
    (BOTH, "diff -v nosuch F F", "no variable nosuch"),
    (BOTH, "diff -x nosuch F F", "no variable nosuch"),
    (BOTH, "diff -i nosuch F F", "no attribute nosuch"),
    (BOTH, "dump -v nosuch F", "nosuch: no such variable"),
    (BOTH, "dump -g nosuch F", "nosuch: no such group"),
    (BOTH, "view F nosuch", "nosuch: no such variable"),
    (BOTH, "view F v --at nosuch=1", "no dimension nosuch"),
    (BOTH, "view -o picture.nosuch F v", ""),
    (BOTH, "recover --trust nosuchuser F", "no user"),
    (BOTH, "info nosuch.nc", "No such file"),
    (BOTH, "check nosuch.nc", "No such file"),
    (BOTH, "diff F nosuch.nc", "No such file"),
    # A value out of range.
    (["nc4"], "copy -c x/-1 F T", ""),
    (["nc4"], "copy -c v:x/41 F T", "has no more"),
    (["nc4"], "copy -c x/4000 F T", "has no more"),
    (["nc4"], "copy -d 10 F T", ""),
    (["nc4"], "copy --zstd 99 F T", ""),
    (["nc4"], "copy -F deflate,10 F T", ""),
    (["nc4"], "copy -F zstd,99 F T", ""),
    (["nc4"], "copy -F bzip2,10 F T", ""),
    (["nc4"], "copy --quantize bitgroom,0 F T", ""),
    (["nc4"], "copy --quantize v:bitgroom,99 F T", ""),
    (["nc4"], "copy --quantize v:bitround,24 F T", ""),
    (BOTH, "copy -m 0 F T", ""),
    (BOTH, "copy -m 1 F T", "4 MiB"),
    (BOTH, "diff -t -1 F F", ""),
    (BOTH, "diff -r nan F F", ""),
    (BOTH, "dump -l 3 F", ""),
    (BOTH, "dump -p 0 F", ""),
    (BOTH, "dump -p 7,99 F", ""),
    (BOTH, "dump -b x F", ""),
    (BOTH, "view F v --index x=40", "no index 40"),
    (BOTH, "view F v --index x=-41", "no index -41"),
    (BOTH, "view F v --at x=40", "outside; x is 0 to 39"),
    (BOTH, "view F v --at x=first", "no number"),
    (BOTH, "view F v --at y=-101", "no index -101"),
    (BOTH, "view F v --panels nosuch", "no dimension nosuch"),
    (BOTH, "view F v --panels x --index x=1", "only one of both"),
    (BOTH, "view -o p.png --width 1 F v", ""),
    (BOTH, "view -o p.png --width 10000000 F v", ""),
    # It cannot apply to the file.
    (["classic"], "copy -c x/5 F T", "classic files have no chunks"),
    (["classic"], "copy --contiguous v F T", "classic files have no chunks"),
    (["classic"], "copy -F zstd F T", "classic files have no chunks"),
    (["classic"], "copy -d 1 F T", "classic files have no chunks"),
    (["classic"], "copy --zstd 1 F T", "classic files have no chunks"),
    (["classic"], "copy -s F T", "classic files have no chunks"),
    (["classic"], "copy --fletcher32 F T", "classic files have no chunks"),
    (["classic"], "copy --quantize bitgroom,3 F T", "classic files have no chunks"),
    (["classic"], "copy --no-filters F T", "classic files have none"),
    (["classic"], "copy -d 0 F T", "classic files have none"),
    (["nc4"], "copy -k classic -d 1 -x t F T", "classic files have no chunks"),
    (["nc4"], "copy -k classic F T", "cannot hold"),
    (BOTH, "copy -u F T", "none is unlimited"),
    (["nc4"], "copy -F s:zstd F T", "no dimensions"),
    (["nc4"], "copy -F t:zstd F T", "no fixed length"),
    (["nc4"], "copy -F t*:zstd F T", "no fixed length"),
    (["text"], "copy -F zstd F T", "no variable gets filters"),
    (["text"], "copy -d 1 F T", "no variable gets filters"),
    (["text"], "copy --fletcher32 F T", "no variable gets filters"),
    (["nc4"], "copy --contiguous i -F i:zstd F T", "it is asked to be contiguous"),
    (["nc4"], "copy --contiguous i -c i:y/5 F T", "it is asked to be contiguous"),
    (["records4"], "copy --contiguous v F T", "stays in chunks"),
    (["records4"], "copy --contiguous v* F T", "stays in chunks"),
    (["nc4"], "copy --quantize i:bitgroom,3 F T", "keeps its precision"),
    (["nc4"], "copy --quantize i*:bitgroom,3 F T", "keeps its precision"),
    (["text"], "copy --quantize bitgroom,3 F T", "keep their precision"),
    (["nc4"], "copy -c n/2 F T", "no effect"),
    (["nc4"], "copy -c s:x/2 F T", "no such dimension"),
    (BOTH, "copy -v v -x v -v nosuch F T", "nosuch"),
    (BOTH, "copy F F", ""),
    (BOTH, "diff -m --values F F", ""),
    (BOTH, "diff -m -t 1 F F", ""),
    (BOTH, "diff --values -i units F F", ""),
    (BOTH, "dump -h -v v F", "-v has no effect"),
    (BOTH, "dump -h -b c F", "-b has no effect"),
    (BOTH, "dump -h -f c F", "-f has no effect"),
    (BOTH, "dump -h -c F", "-c has no effect"),
    (BOTH, "dump -F F", "-F has no effect"),
    (BOTH, "dump -k -h F", "-h has no effect"),
    (BOTH, "dump -k -s F", "-s has no effect"),
    (BOTH, "view F c", "no picture"),
    (["nc4"], "view F t", "no numbers"),
    (BOTH, "view -o p.svg --diverging F x", "no effect"),
    (BOTH, "view --at x=1 F", "want a variable"),
    (BOTH, "view --width 500 F v", ""),
    (BOTH, "view --diverging F v", "colours"),
    (BOTH, "view --range 1,2 F v", "colours"),
    (BOTH, "view --panels x F", "want a variable"),
    (BOTH, "recover -f F", ""),
    (BOTH, "recover -a F", ""),
    (BOTH, "recover --records --to T F", ""),
    (["nc4"], "recover --records F", "only classic files"),
    (["classic"], "recover --records F", "no variable has records"),
    (BOTH, "recover --to T F F", "one file"),
    (BOTH, "check -q --json F", ""),
    (BOTH, "check -q -a F", ""),
    (BOTH, "trace F", ""),
    (BOTH, "tune --trace F", ""),
    # And where all is well there is no word.
    (BOTH, "copy -v v F T", SILENT),
    (BOTH, "copy -v v* -x x F T", SILENT),
    (["nc4"], "copy -c v:x/40,y/100 F T", SILENT),
    (["nc4"], "copy -c x/10,y/10 F T", SILENT),
    (["nc4"], "copy -c y/0 F T", SILENT),
    (["nc4"], "copy -d 1 -s F T", SILENT),
    (["nc4"], "copy -F v*:zstd|shuffle -F *:none F T", SILENT),
    (["nc4"], "copy --no-filters F T", SILENT),
    (["nc4"], "copy --contiguous * F T", SILENT),
    (["nc4"], "copy --quantize bitgroom,3 F T", SILENT),
    (["nc4"], "copy -F *:deflate F T", SILENT),
    (["records3", "records4"], "copy -u F T", SILENT),
    (["records4"], "copy -c r/4000 F T", SILENT),
    (["records4"], "copy --contiguous * F T", SILENT),
    (["classic"], "copy -k netcdf4 -d 1 F T", SILENT),
    (BOTH, "diff -i units -t 1 -r 0.1 F F", SILENT),
    (BOTH, "diff -m -i u* F F", SILENT),
    (BOTH, "dump -h -s F", SILENT),
    (BOTH, "dump -s -F -v v -b c F", SILENT),
    (BOTH, "view F v --index x=-1 --text", SILENT),
    (BOTH, "view F v --at x=39.4,y=-1 --terminal=ascii", SILENT),
    (BOTH, "view -o p.svg F i x", SILENT),
    (BOTH, "view -o p.svg --diverging F v", SILENT),
    (["records3"], "recover --records F", SILENT),
]


def main():
    options, counts = rig.arguments(rig.parser(__doc__)), rig.Counts()
    if not rig.ZONDA.exists():
        raise rig.Setup(f"no {rig.ZONDA}: build it first")
    with rig.scratch() as folder:
        os.chdir(folder)
        for name, (kind, text) in FILES.items():
            Path(f"{name}.cdl").write_text(text)
            rig.must([rig.BIN / "ncgen", kind, "-o", f"{name}.nc", f"{name}.cdl"])
        for names, line, said in TABLE:
            for name in [name for name in names if options.wants(f"{line} ({name})")]:
                target = Path("target.nc")
                target.unlink(missing_ok=True)
                words = {"F": f"{name}.nc", "T": str(target)}
                args = [words.get(word, word) for word in line.split()]
                done = rig.run([rig.ZONDA, *args])
                told = done.stderr + (done.stdout if args[0] == "recover" else "")
                what = None
                if done.returncode < 0 or "panicked" in done.stderr:
                    what = "ends by a signal"
                elif said is SILENT:
                    if done.returncode or done.stderr:
                        what = "has an effect, and is not silent"
                elif done.returncode == 0 and not told:
                    what = "no effect, and not a word"
                elif not re.search(re.escape(said), told):
                    what = f"not said: {said}"
                counts.check(f"{line} ({name})", what and f"{what}\n        {done.returncode} {told.strip()[:300]}")
        os.chdir("/")
    return counts


if __name__ == "__main__":
    rig.main(main)
