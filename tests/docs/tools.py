# SPDX-License-Identifier: MIT OR Apache-2.0
"""Manual pages and completions in dist/share: one for each command, well formed, with the options that the command takes."""
import re
import shutil
import string
import sys

import rig

sys.path.insert(0, str(rig.ROOT / "scripts"))
import tool_pages  # noqa: E402

SHARE = rig.PREFIX / "share"
CALLED_WRONGLY = ("invalid option", "unknown option", "unrecognized")


def commands():
    """The commands of `zonda`, by its help."""
    text = rig.must([rig.ZONDA, "--help"], rig.environment())
    return re.findall(r"^  ([a-z]+) +\S", text[text.index("Commands:") : text.index("Options:")], re.M)


def taken(name):
    """The options that a tool takes, as it says when it is asked for each."""
    if name == "nc-config":
        return set(re.findall(r"--[a-z0-9+-]+", rig.must([rig.BIN / name, "--help"], rig.environment())))
    found = set()
    for letter in string.ascii_letters + string.digits:
        done = rig.run([rig.BIN / name, "-" + letter], rig.environment(rig.LIBDIR))
        if not any(word in done.stderr for word in CALLED_WRONGLY):
            found.add("-" + letter)
    return found


def table(name, tool, folder):
    """The table has what the tool takes, and no more."""
    options = {option.name for option in tool.options}
    real = taken(name)
    if name == "nc-config":
        # Names of other languages are said in one line with others.
        real -= {option for option in real if re.match("--cxx", option)}
    if options != real:
        raise rig.Wrong(f"the table lacks {sorted(real - options)}, and has {sorted(options - real)} that it does not take")
    for option in tool.options if name == "nc-config" else ():
        rig.must([rig.BIN / name, option.name], rig.environment())


def page(path):
    """A page that the formatter has nothing to say about."""
    done = rig.run(["man", "--warnings=w", "-l", path], rig.environment(MANWIDTH="80", MANPAGER="cat"))
    if done.returncode or done.stderr.strip() or "NAME" not in done.stdout:
        raise rig.Wrong((done.stderr or done.stdout or "no text")[:400])


def mentioned(path, tool):
    text = path.read_text()
    gone = [option.name for option in tool.options if option.name not in text and tool_pages.roff(option.name) not in text and f"-s {option.name[1:]} " not in text and f"-l {option.name[2:]} " not in text]
    if gone:
        raise rig.Wrong(f"{path.name} lacks {gone}")


def completed(script, *words):
    """What bash would offer for the last of these words."""
    text = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _zonda_netcdf_tools "$1"; printf "%s\\n" "${COMPREPLY[@]}"'
    return set(rig.must(["bash", "-c", text, "bash", script, *words], rig.environment()).splitlines())


def in_bash(name, tool, script):
    """All options are offered, and the words of those that have some."""
    options = {option.name for option in tool.options}
    if completed(script, name, "-") != options:
        raise rig.Wrong(f"for `-` bash offers {sorted(completed(script, name, '-'))}")
    for option in tool.options:
        if option.words and not option.joined:
            offered = {word.replace("\\ ", " ") for word in completed(script, name, option.name, "")}
            if offered != set(option.words):
                raise rig.Wrong(f"for `{option.name} ` bash offers {sorted(offered)}")


def check(options, counts, scratch):
    if options.only:
        return
    made = scratch / "pages"
    rig.must([sys.executable, rig.ROOT / "scripts" / "tool_pages.py", made], rig.environment())
    for name, tool in tool_pages.TOOLS.items():
        counts.attempt(f"options of {name}", table, name, tool, scratch)
        counts.attempt(f"bash completion of {name}", in_bash, name, tool, made / "share/bash-completion/completions" / name)
        for path in (made / "share/man/man1" / f"{name}.1", made / "share/bash-completion/completions" / name, made / "share/fish/vendor_completions.d" / f"{name}.fish",
                     made / "share/zsh/site-functions/_zonda_netcdf_tools"):
            counts.attempt(f"{path.name} of {name}", mentioned, path, tool)
    pages = sorted(SHARE.glob("man/man1/*.1"))
    wanted = {f"zonda-{name}" for name in commands() if name != "help"} | {"zonda"} | set(tool_pages.TOOLS)
    lacking = wanted - {path.stem for path in pages}
    counts.check("manual pages", f"none of {', '.join(sorted(lacking))}; make build puts them into dist" if lacking else None)
    for path in pages:
        # A page that stands for another one is looked for in the folder of pages.
        if not shutil.which("man"):
            counts.skip(path.name, "no man")
        elif not path.read_text().startswith(".so "):
            counts.attempt(path.name, page, path)
    for shell, pattern in (("bash", "bash-completion/completions/*"), ("zsh", "zsh/site-functions/*"), ("fish", "fish/vendor_completions.d/*")):
        for path in sorted(SHARE.glob(pattern)):
            if not shutil.which(shell):
                counts.skip(f"{shell} completion {path.name}", f"no {shell}")
                continue
            done = rig.run([shell, "-n", path], rig.environment())
            counts.check(f"{shell} completion {path.name}", done.stderr if done.returncode or done.stderr else None)
