#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Manual pages and completions of the tools that have netCDF-C's names: ncdump, ncgen, ncgen3, nccopy, nc-config.

    scripts/tool_pages.py FOLDER    into FOLDER/share, beside those of `zonda`, which come from the command itself

All of it comes from the table below, so that a page and a completion cannot differ. tests/docs (`tools`) compares the
table with the options that each tool takes.
"""
import sys
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ("classic", "64-bit offset", "cdf5", "netCDF-4", "netCDF-4 classic model")


@dataclass(frozen=True)
class Option:
    """`value` is the name of what follows, "" for nothing; `words` are those that it may be, `joined` that no space comes between."""

    name: str
    value: str
    about: str
    words: tuple = ()
    joined: bool = False


@dataclass(frozen=True)
class Tool:
    about: str
    synopsis: str
    text: tuple
    options: tuple
    statuses: tuple = ()
    examples: tuple = ()
    files: bool = True
    also: tuple = field(default=())


def kinds(letters):
    """The options that stand for a kind of file."""
    names = {"3": "classic", "6": "64-bit offset", "5": "cdf5", "4": "netCDF-4", "7": "netCDF-4 classic model"}
    return tuple(Option("-" + letter, "", f"the same as -k '{names[letter]}'") for letter in letters)


NCGEN = (
    Option("-b", "", "make a file: the text's name with the ending .nc, in this folder"),
    Option("-c", "", "write a C program that makes the file, to standard output"),
    Option("-f", "", "write a Fortran 77 program that makes the file, to standard output"),
    Option("-n", "", "as -b, with the ending .cdf"),
    Option("-o", "file", "make a file of this name"),
    Option("-x", "", "elements without a value are not filled"),
    Option("-k", "kind", "kind of the file, by a name or a number from 1 to 5", KINDS),
    Option("-v", "kind", "the same as -k"),
)

TOOLS = {
    "ncdump": Tool(
        "writes a netCDF file as text (CDL)",
        "[options] file",
        (
            "Writes the definitions and the data of a file as CDL to standard output. The file is classic (CDF-1, CDF-2, CDF-5), netCDF-4 or another HDF5 "
            "file, a URL of a file behind HTTP or S3, or a dataset of an OPeNDAP server. The text is that of ncdump 4.9.0 of netCDF-C.",
            "It is the program zonda, called by another name. Numbers are made into text on all cores, and memory does not grow with the file.",
        ),
        (
            Option("-h", "", "the header only, no data"),
            Option("-c", "", "the header, and data of coordinate variables"),
            Option("-v", "var,...", "data of these variables only; in groups by path, such as /ocean/temp"),
            Option("-g", "grp,...", "data of these groups only"),
            Option("-b", "c|f", "a comment before each row with its indices, as in C or Fortran", ("c", "f")),
            Option("-f", "c|f", "a comment after each value with its indices, as in C or Fortran", ("c", "f")),
            Option("-l", "n", "longest line of the data section (80)"),
            Option("-n", "name", "name of the dataset, by default that of the file without its extension"),
            Option("-p", "n[,n]", "significant digits of float (7) and double (15) values; goes before C_format"),
            Option("-d", "n[,n]", "the same as -p, as older versions have it"),
            Option("-k", "", "only the kind of file"),
            Option("-K", "", "only the kind of file and the mode in which it is opened"),
            Option("-x", "", "NcML instead of CDL; not for netCDF-4"),
            Option("-s", "", "also virtual attributes, such as _Format, _Storage, _ChunkSizes and _DeflateLevel"),
            Option("-F", "", "with -s, _Filter for all filters instead of _Fletcher32, _Shuffle and _DeflateLevel"),
            Option("-t", "", "numbers whose units are those of time as dates"),
            Option("-i", "", "as -t, with a T between date and time of day"),
            Option("-w", "", "accepted, without effect"),
            Option("-X", "m|p", "m: read the file into memory at once; p: accepted, without effect", ("m", "p"), True),
            Option("-L", "n", "accepted, a level of logging", (), True),
        ),
        ("0 where the text is complete, 1 where the file cannot be read or the text cannot be written.",),
        ("ncdump -h data.nc", "ncdump -v temp,time -t data.nc", "ncdump -hs data.nc"),
        also=("ncgen", "nccopy", "zonda-dump", "zonda-info"),
    ),
    "ncgen": Tool(
        "makes a netCDF file of text (CDL), or a program that makes it",
        "[options] [file]",
        (
            "Reads CDL, as ncdump writes it, from a file or from standard input. Without an option that asks for something it only checks the text.",
            "It is the program zonda, called by another name. A file that cannot be completed is not made; an error shows line, column and the line itself.",
        ),
        (
            *NCGEN,
            *kinds("36547"),
            Option("-1", "", "accepted, without effect"),
            Option("-l", "language", "what to make: b a file, c, f77 or java a program", ("b", "c", "f77", "java")),
            Option("-M", "name", "name of the main function in a program"),
            Option("-N", "name", "name of the dataset, in place of that in the text"),
            Option("-h", "", "print the usage"),
            Option("-H", "", "make the header only, no data"),
            Option("-P", "", "make the file in memory, and write it when it is closed"),
            Option("-B", "n", "accepted, without effect"),
            Option("-D", "level", "accepted, without effect"),
            Option("-d", "", "accepted, without effect"),
            Option("-L", "level", "accepted, without effect"),
            Option("-W", "n", "accepted, without effect"),
        ),
        ("0: done. 1: the text is wrong, or the file cannot be made. 2: no such kind. 6: more than one text. 8: no such option.",),
        ("ncgen -4 -o data.nc data.cdl", "ncgen -k cdf5 -o data.nc data.cdl", "ncgen -l c data.cdl > make_data.c"),
        also=("ncgen3", "ncdump", "nccopy"),
    ),
    "ncgen3": Tool(
        "makes a classic netCDF file of text (CDL), or a program that makes it",
        "[options] [file]",
        ("As ncgen, for texts of the classic model: no groups, and no types of one's own. Scripts for old versions of netCDF call it.",),
        (*NCGEN, Option("-l", "language", "what to make: b a file, c or f77 a program", ("b", "c", "f77"))),
        ("0: done. 1: the text is wrong, or the file cannot be made. 2: no such kind. 6: more than one text. 8: no such option.",),
        ("ncgen3 -o data.nc data.cdl",),
        also=("ncgen", "ncdump"),
    ),
    "nccopy": Tool(
        "copies a netCDF file, in another kind, other chunks or other filters",
        "[options] infile outfile",
        (
            "Copies what no option changes as it is. infile may be a URL of a file behind HTTP or S3, or of a dataset of an OPeNDAP server; outfile may be s3://BUCKET/KEY. "
            "Options and choices are those of nccopy 4.9.0 of netCDF-C; zonda copy has more.",
            "It is the program zonda, called by another name. Chunks that stay as they are are not decompressed; others go by all cores, in memory of a fixed size. "
            "The copy gets its name when it is complete. Ranks that mpiexec starts divide the work.",
        ),
        (
            Option("-k", "kind", "kind of the copy, by default that of the source", KINDS),
            *kinds("3647"),
            Option("-d", "n", "deflate at level n, from 1 to 9; 0 to undo compression"),
            Option("-s", "", "shuffle bytes before they are deflated, with -d"),
            Option("-c", "chunkspec", "shapes of chunks: 'dim/n,...' for all variables, 'var:n,...', 'var:contiguous' or 'var:compact' for one; may be repeated"),
            Option("-F", "filterspec", "filters: 'var,id,param,...|...', 'var,none', '*,...' or 'none'; may be repeated"),
            Option("-M", "n", "fixed-size variables whose chunks would have fewer than n bytes get none (8192)", (), True),
            Option("-u", "", "unlimited dimensions become fixed"),
            Option("-v", "var,...", "data of these variables only, definitions of all"),
            Option("-V", "var,...", "these variables only"),
            Option("-g", "grp,...", "data of these groups only, definitions of all"),
            Option("-G", "grp,...", "these groups only"),
            Option("-m", "n", "memory for data, with K, M, G, T or P behind it; 256 MiB by default"),
            Option("-h", "n", "the same, as a size of the chunk cache; the larger one counts"),
            Option("-r", "", "read the source into memory at once"),
            Option("-e", "n", "accepted, without effect"),
            Option("-w", "", "accepted, without effect"),
            Option("-x", "", "accepted, without effect"),
            Option("-L", "n", "accepted, without effect"),
        ),
        ("0 where the copy is complete; 1 where something failed, and then there is no copy.",),
        ("nccopy -k cdf5 data.nc data5.nc", "nccopy -d 4 -s data.nc small.nc", "nccopy -c time/1000,lat/20,lon/20 maps.nc series.nc"),
        also=("ncdump", "ncgen", "zonda-copy"),
    ),
    "nc-config": Tool(
        "tells how to compile and link with the netCDF library",
        "option...",
        (
            "Prints flags for compilers, folders, and what the library can do (yes or no), for the installation in which it lies. The folder may be moved: paths follow it. "
            "By the name nc-config.mpi it answers for programs that use MPI: the same library, and headers that say that it is parallel.",
        ),
        (
            Option("--cc", "", "the C compiler"),
            Option("--cflags", "", "flags for compiling C"),
            Option("--libs", "", "flags for linking C; with --static those of the static library"),
            Option("--static", "", "with --libs: link libnetcdf.a"),
            Option("--prefix", "", "the installation's folder"),
            Option("--includedir", "", "the folder of headers"),
            Option("--libdir", "", "the folder of libraries"),
            Option("--fc", "", "the Fortran compiler"),
            Option("--fflags", "", "flags for compiling Fortran, with the distribution's netCDF-Fortran"),
            Option("--flibs", "", "flags for linking Fortran"),
            *(Option(f"--has-{name}", "", about) for name, about in (
                ("nc2", "functions of netCDF-2"), ("nc4", "netCDF-4 files"), ("hdf5", "the same"), ("hdf4", "HDF4 files"), ("cdf5", "CDF-5 files"),
                ("dap", "OPeNDAP"), ("dap2", "its version 2"), ("dap4", "its version 4"), ("nczarr", "Zarr stores"), ("byterange", "files behind HTTP"), ("s3", "files behind S3"),
                ("szlib", "szip"), ("logging", "messages of nc_set_log_level"), ("pnetcdf", "parallel classic files"), ("parallel4", "parallel netCDF-4 files"),
                ("parallel", "either of these"), ("fortran", "a Fortran library"), ("f90", "Fortran 90"), ("f03", "Fortran 2003"), ("c++", "a C++ library"), ("c++4", "a netCDF-4 C++ library"),
            )),
            Option("--version", "", "version of the netCDF interface"),
            Option("--all", "", "all of it"),
            Option("--help", "", "the list of options"),
        ),
        ("0, or 1 where an option is not known.",),
        ("cc model.c $(nc-config --cflags --libs)", "gfortran model.f90 $(nc-config --fflags --flibs)", "mpicc model.c $(nc-config.mpi --cflags --libs)"),
        files=False,
        also=("ncdump", "zonda"),
    ),
}


def roff(text):
    """Text as a page needs it: no hyphens for minus signs, nothing that begins a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def environment(name):
    """The variables of a tool, and what each decides: from the table that `zonda man` has."""
    rows = (Path(__file__).resolve().parents[1] / "crates/zonda-cli/src/cmd/environment.txt").read_text().splitlines()
    for variable, pages, about in (row.split("\t") for row in rows if not row.startswith("#")):
        if name in pages.split() or ("files" in pages.split() and name != "nc-config"):
            yield variable, about


def man(name, tool):
    """A manual page."""
    lines = [f'.TH {name.upper()} 1 "" "zonda" "netCDF tools"', ".SH NAME", f"{roff(name)} \\- {roff(tool.about)}", ".SH SYNOPSIS", f".B {roff(name)}", roff(tool.synopsis), ".SH DESCRIPTION"]
    for at, text in enumerate(tool.text):
        lines += [".PP"] * bool(at) + [roff(text)]
    lines.append(".SH OPTIONS")
    for option in tool.options:
        value = f" \\fI{roff(option.value)}\\fR" if option.value else ""
        lines += [".TP", f"\\fB{roff(option.name)}\\fR{value.strip() if option.joined else value}", roff(option.about[0].upper() + option.about[1:] + ".")]
        if option.words and option.name in ("-k", "-v"):
            lines.append(roff("One of " + ", ".join(f"'{word}'" for word in option.words) + "."))
    if tool.statuses:
        lines += [".SH EXIT STATUS", *map(roff, tool.statuses)]
    variables = list(environment(name))
    if variables:
        lines.append(".SH ENVIRONMENT")
    for variable, about in variables:
        lines += [".TP", f"\\fB{roff(variable)}\\fR", roff(about[0].upper() + about[1:] + ".")]
    if tool.examples:
        lines += [".SH EXAMPLES", ".nf", *map(roff, tool.examples), ".fi"]
    lines += [".SH SEE ALSO", *(f".BR {roff(other)} (1)" + "," * (other != tool.also[-1]) for other in tool.also)]
    return "\n".join(lines) + "\n"


def quoted(text, mark="'"):
    return mark + text.replace("'", "'\\''") + mark


def bash():
    """One function for all tools: options, words of those that take some, else files."""
    cases, words = [], []
    for name, tool in TOOLS.items():
        cases.append(f"        {name}) options={quoted(' '.join(option.name for option in tool.options))} ;;")
        for option in tool.options:
            if option.words and not option.joined:
                listed = "\\n".join(option.words)
                words.append(f"        {name}:{option.name}) words=$'{listed}' ;;")
    return f"""# bash completion of {', '.join(TOOLS)}
_zonda_netcdf_tools() {{
    local tool=${{1##*/}} now=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} options= words= IFS=$'\\n'
    tool=${{tool%.mpi}}
    case $tool in
{chr(10).join(cases)}
    esac
    case $tool:$before in
{chr(10).join(words)}
    esac
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$now"))
        # A word with a space in it is one argument.
        [ ${{#COMPREPLY[@]}} -eq 0 ] || COMPREPLY=($(printf '%q\\n' "${{COMPREPLY[@]}}"))
    elif [[ $now == -* ]]; then
        COMPREPLY=($(compgen -W "${{options// /$'\\n'}}" -- "$now"))
    elif [ "$tool" != nc-config ]; then
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$now"))
    fi
}}
complete -F _zonda_netcdf_tools {' '.join(TOOLS)} nc-config.mpi
"""


def zsh():
    """One file for all tools, with the descriptions of options."""
    lines = [f"#compdef {' '.join(TOOLS)} nc-config.mpi", "", 'case ${service%.mpi} in']
    for name, tool in TOOLS.items():
        lines.append(f"    {name})")
        lines.append("        _arguments -s \\" if all(len(option.name) == 2 for option in tool.options) else "        _arguments \\")
        for option in tool.options:
            about = option.about.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
            value = ""
            if option.value:
                choices = "(" + " ".join(word.replace(" ", "\\ ") for word in option.words) + ")" if option.words else "_files" if option.value == "file" else ""
                value = f":{option.value.replace(':', ' ')}:{choices}"
            lines.append("            " + quoted(f"*{option.name}{'-' if option.joined else '+' if value else ''}[{about}]{value}" if not option.name.startswith("--") else f"*{option.name}[{about}]") + " \\")
        lines.append("            '*:file:_files'" if tool.files else "            && return")
        lines.append("        ;;")
    return "\n".join([*lines, "esac"]) + "\n"


def fish(name, tool):
    """A file for one tool: fish looks for it by the tool's name."""
    lines = []
    for option in tool.options:
        kind = f"-l {option.name[2:]}" if option.name.startswith("--") else f"-s {option.name[1:]}"
        words = ""
        if option.words:
            words = ' -x -a "' + " ".join(f"'{word}'" for word in option.words) + '"'
        elif option.value:
            words = " -r"
        lines.append(f"complete -c {name} {kind}{words} -d " + '"' + option.about.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"')
    if not tool.files:
        lines.append(f"complete -c {name} -f")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    share = Path(sys.argv[1]) / "share"
    for name, tool in TOOLS.items():
        written(share / "man/man1" / (name + ".1"), man(name, tool))
        written(share / "fish/vendor_completions.d" / (name + ".fish"), fish(name, tool))
        # bash, too, looks for a file by the name of the command.
        written(share / "bash-completion/completions" / name, bash())
    written(share / "zsh/site-functions/_zonda_netcdf_tools", zsh())
    for folder, name in (("man/man1", "nc-config.mpi.1"), ("bash-completion/completions", "nc-config.mpi")):
        written(share / folder / name, ".so man1/nc-config.1\n" if name.endswith(".1") else bash())


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(".new." + path.name)
    new.write_text(text)
    new.replace(path)


if __name__ == "__main__":
    main()
