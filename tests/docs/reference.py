# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pages of reference have what there is: commands as their help, functions of the headers, names of the Python package."""
import ast
import re
import subprocess
import sys

import rig

PAGES = rig.ROOT / "docs" / "reference"


def functions():
    """Zonda's own functions, of C and Fortran."""
    text = "".join((rig.ROOT / "include" / name).read_text() for name in ("zonda.h", "netcdf_par.h", "zonda.f90"))
    return set(re.findall(r"\b((?:nc|nf90)_zonda_\w+)\s*\(", text))


def public():
    """What `from zonda import *` gives, and the functions that ask for xarray."""
    tree = ast.parse((rig.ROOT / "python" / "zonda" / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value)) | {"open_mfdataset", "to_netcdf"}
    raise rig.Wrong("no __all__ in python/zonda/__init__.py")


def lacks(page, names, form):
    text = (PAGES / page).read_text()
    gone = sorted(name for name in names if not re.search(form % re.escape(name), text, re.M))
    return f"{page} lacks {', '.join(gone)}" if gone or not names else None


def check(options, counts, _):
    if options.only:
        return
    counts.check("reference/c.md", lacks("c.md", functions(), r"`%s[(`]"))
    counts.check("reference/python.md", lacks("python.md", public(), r"^::: zonda\.(?:\w+\.)?%s$"))
    done = subprocess.run([sys.executable, rig.ROOT / "scripts" / "commands.py", "--check"], capture_output=True, text=True, check=False)
    counts.check("reference/commands.md", done.stdout + done.stderr if done.returncode else None)
    done = subprocess.run([sys.executable, rig.ROOT / "scripts" / "pictures.py", "--check"], capture_output=True, text=True, check=False)
    counts.check("guides/pictures", done.stdout + done.stderr if done.returncode else None)
