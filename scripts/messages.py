#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the table of all messages that the tools and the libraries can print: docs/dev/messages.md.

Who reads a message in a log finds here where it is made, and who writes one sees what words others use. The script
reads the source: each string is judged by what it is an argument of. It is a message if

    an attribute #[error("...")], a constructor of errors (MAKERS) or an output to standard error has it;
    it is a sentence, and nothing around it (QUIET) says that it is help, output of a command or generated code.

    scripts/messages.py              writes the table
    scripts/messages.py --check      is it up to date, and do the cases of --self-test hold? exit 1 if not
    scripts/messages.py --self-test  the cases that show what is found
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/dev/messages.md"
HEAD = """# Messages
All texts by which the tools and the libraries report what is wrong. `scripts/messages.py` makes the table from the source, and
`scripts/lint.sh` checks that it is up to date. A text with `{...}` or `%s` is filled in when it is printed. Some texts are
parts: of an error that says where, or of a sentence that others complete. The kind is taken from how the source makes the
text, and from its words.

| Kind | Means |
|---|---|
| error | what was asked for failed |
| warning | the program goes on, and something is not as expected |
| refusal | the call or the command line asks for something that is not done |
| internal | only a defect of Zonda brings it about |

"""
TOKEN = re.compile(r"""(?P<comment>//[^\n]*|/\*.*?\*/)|b?r(?P<mark>\#*)"(?P<raw>.*?)"(?P=mark)|[bc]?"(?P<text>(?:\\.|[^"\\])*)"
    |(?P<char>b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'|'[a-z_]\w*)|(?P<word>(?:[A-Za-z_]\w*(?:::(?:<[^>()]*>(?:::)?)?|\.))*[A-Za-z_]\w*!?)
    |(?P<open>[([{])|(?P<close>[])}])|(?P<other>\S)""", re.S | re.X)
TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^]]*\]\s*(?:#\[[^]]*\]\s*)*(?:pub(?:\(\w+\))? )?mod \w+ \{.*", re.S)
ITEM = re.compile(r"\b(fn|enum|struct|trait|mod|const|static|macro_rules!) (\w+)(?!.*\bfn )|\bimpl\b.*?([A-Z]\w*)(?: < [^{]*)?$", re.S)

# Calls and structures whose texts are messages, whatever they look like.
MAKERS = re.compile(r"""^error\($|(Error|Fault|Failure|Refusal|Problem|Misfit|Damage)(::\w+)?[({]$|^Self::[A-Z]\w*(Error|Fault)[({]$
    |(^|[.:])(explained|told|retold|answered|refused?|damaged|unsupported|unexpected|bad|new_err|bad_option|out_of_range|warn_once)\($
    |(^|[.:])(word|warn|warning|note|complain|Usage|usage)\($|^(eprintln!|Failure::text|Refusal::text)\($|io::Error::(new|other)\($|(^|\.)(fault|problem|wrong)\($""", re.X)
# What a defect brings about. Clippy's #[expect(...)] is an attribute, not one of these.
INTERNAL = re.compile(r"(\.|^)(expect|unwrap_or_else)\($|^(panic|unreachable|unimplemented|todo|assert(_eq|_ne)?)!\($")
# Around these, a sentence is help, documentation, output, or a text for a program.
QUIET = re.compile(r"""^\#\[$|!\[$|^(json|include_str|concat|env|println|print|debug_assert|debug_assert_eq|matches|format_ident|kinds|family|typed|module)!
    |debug_(struct|tuple)\($|(^|\.)(set_item|field|var|var_os|contains|starts_with|ends_with|split\w*|strip_\w+|trim\w*|find|join|replace|doc|about|help)\($
    |(^|\.)(push_str|line|lines|statement|call|short_call|part|tile|push_table|args?|Axis::new|Table::new|section|targets|heading|row)\($|^Registered\{|^About\{|^LineOptions\{""", re.X)
QUIET_FILES = re.compile(r"""zonda-plot/src|zonda-capi/src/families|zonda-classic/src/changes|zonda-runtime/src/(memory/kind|worker|machine)
    |/classic/ncgen/(c|java|fortran|c_text|data|write)|/cmd/(man|completions|table|view|info|recover|trace/recording|tune/candidates)""", re.X)
QUIET_ITEMS = re.compile(r"^(USAGE|HELP|STYLE|PYTHON|PYTHON_PROBE|LETTERS\w*|LONG|EXAMPLES)$")
WARNING = re.compile(r"""^warning|\bno\ effect\b|\bignored\b|;\ no\ further|nothing\ keeps\ other|read\ as\ zeros|what\ it\ did\ until\ then\ counts
    |left\ out$|becomes\ unlimited|\bgets\ (none|no\ filters)|precision:|is\ taken\ away|\ in\ chunks:|through\ the\ system's\ cache|without\ (it|a\ journal)$""", re.X)


def plain(text):
    """The text as it is printed: lines that a backslash joins are one, and a line end is shown as \\n."""
    text = re.sub(r"\\\n\s*", "", text)
    return text.replace('\\"', '"').replace("\\\\", "\\").replace("\r", "\\r").replace("\n", "\\n").removesuffix("\\0")


def is_sentence(text):
    """Whether a text speaks to a reader: three words at least, and no markup or code."""
    words = re.findall(r"(?<![\w{<-])[A-Za-z][a-z'-]*(?![\w}(=>])", text)
    return len(words) >= 3 and bool(re.search(r"\S \S+ \S", text)) and not re.search(r"^[<&\s]*<\w|^https?:|^\{\{|^-- ", text)


def is_text(text):
    """Whether a text that an error is made with says something: a lone word or name completes a sentence that is elsewhere."""
    return bool(re.search(r"[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", text)) and re.search(r"\S \S", text))


def name_of(scopes, previous):
    """The item that a string stands in, `Type::function` or `Type::Variant`, from the headers of the blocks around it."""
    found = []
    for header in scopes:
        match = ITEM.search(header)
        if match and match[1] != "mod":
            found.append(match[2] or match[3])
    own = ITEM.search(previous)
    if own and own[1] in ("const", "static"):
        found.append(own[2])
    return "::".join(found[-2:])


def kind_of(text, heads, item):
    """What kind of message it is."""
    if any(INTERNAL.search(head) for head in heads) or re.search(r"\bwhich is a bug\b|\bpanicked$", text):
        return "internal"
    if any(re.search(r"warn", head) for head in heads) or WARNING.search(text) or re.search(r"\bwarn", item):
        return "warning"
    if any(re.search(r"Refus|refus|[Uu]sage|explained|unsupported|Unsupported|only_read", word) for word in [*heads, item]):
        return "refusal"
    return "error"


def rust(source, path):
    """The messages of a Rust file: text, item, kind."""
    heads, scopes, statement, previous = [], [], "", ""
    for match in TOKEN.finditer(TESTS.sub("", source)):
        kind, token = match.lastgroup, match[0]
        if kind == "comment":
            continue
        text = match["text"] if match["text"] is not None else match["raw"]
        if text is not None:
            text = plain(text)
            inner = [head for head, _ in reversed(heads)]
            near = next((n for n, head in enumerate(inner) if head.endswith("{") and not MAKERS.search(head)), len(inner))
            call = inner[:near]
            item = name_of(scopes, statement)
            if inner and inner[0] == "error(" and inner[1:2] == ["#["]:
                # The variant or the structure follows the attribute.
                rest = re.match(r"[^]]*\]\s*(?:(?:///?[^\n]*|#\[[^]]*\])\s*)*(?:pub(?:\([a-z]+\))? )?(?:struct |enum )?(\w+)", source[match.end():])
                item = "::".join(part for part in (item, rest and rest[1]) if part)
                said = text not in ("{0}", "{}", "transparent")
            elif inner and inner[0] == "nc_errors!{":
                item, said = re.findall(r"NC_\w+", statement)[-1], True
            elif any(QUIET.search(head) for head in inner[:near + 1]) or QUIET_ITEMS.search(item.split("::")[-1]):
                said = False
            elif any(MAKERS.search(head) for head in call):
                said = is_text(text)
            elif any(INTERNAL.search(head) for head in call):
                said = is_sentence(text)
            else:
                output = any(re.search(r"^writeln?!\(|^write!\(", head) for head in call)
                shown = re.search(r"(Misfit|Refusal|Problem|Fault|NoMemory|Unused|Gap|Error)::fmt$", item)
                said = (is_sentence(text) or bool(shown) and is_text(text)) and not (QUIET_FILES.search(path) or "zonda-hdf5" in path and re.search(r"(^|::)[A-Z_]+$", item)) and (
                    not output or re.match(r"zonda\b|\{program\}", text) or re.search(r"fmt|stderr", " ".join([item, statement])))
            if said and text.strip():
                yield text, item, kind_of(text, call, item)
        elif kind == "open":
            heads.append((previous + token, len(scopes)))
            scopes, statement = ([*scopes, statement], "") if token == "{" else (scopes, statement)
        elif kind == "close":
            scopes = scopes[:heads.pop()[1]] if heads else []
            statement = "" if token == "}" else statement
        elif token == ";" and (not heads or heads[-1][0].endswith("{")):
            statement = ""
        if token not in ("{", "}", ";") or text is not None:
            statement = (statement + " " + (token if text is None else '""'))[-400:]
        previous = token if text is None else '""'


def python(source):
    """The messages of a Python file: what is raised, warned of, or printed on standard error."""
    def walk(node, item):
        for child in ast.iter_child_nodes(node):
            inside = item
            if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                inside = [*item, child.name]
            call = child.exc if isinstance(child, ast.Raise) else child
            said = isinstance(call, ast.Call) and (isinstance(child, ast.Raise) or re.search(r"warn\(|stderr|\.error\(", ast.unparse(call.func) + "(" + ast.unparse(call)))
            if said:
                kind = "warning" if "warn" in ast.unparse(call.func) else "error"
                for argument in call.args:
                    for text in texts(argument):
                        yield text, ".".join(inside), kind
            yield from walk(child, inside)

    def texts(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_text(node.value):
            yield node.value.replace("\n", "\\n")
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{%s}" % ast.unparse(part.value) for part in node.values).replace("\n", "\\n")
        elif isinstance(node, (ast.BinOp, ast.IfExp)):
            for side in (node.left, ) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) else ast.iter_child_nodes(node):
                yield from texts(side)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            yield from texts(node.func.value)

    yield from walk(ast.parse(source), [])


def c(source):
    """The messages of a C file: the formats of what goes to standard error."""
    for match in re.finditer(r'\b(?:fprintf|fputs)\((?:stderr, )?"((?:\\.|[^"\\])*)"', source):
        before = re.findall(r"^\w[\w *]*?(\w+)\([^;]*$", source[:match.start()], re.M)
        if re.search(r"[A-Za-z]{2}", re.sub(r"%\w", "", match[1])):
            yield plain(match[1]), before[-1] if before else "", "error"


def messages(root=ROOT):
    """All messages, by crate: text, file, item, kind."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "crates/*/src/*.rs", "python/src/*.rs", "python/zonda/*.py", "crates/*/csrc/*.c"], cwd=root, check=True, capture_output=True, text=True)
    for name in sorted(listed.stdout.split()):
        if re.search(r"/tests?(/|\.rs$)|_tests?\.rs$|zonda-testkit|/(lab|testing|trial)\.rs$", name) or not (root / name).exists():
            continue
        source = (root / name).read_text()
        found = python(source) if name.endswith(".py") else c(source) if name.endswith(".c") else rust(source, name)
        yield from ((text, name, item, kind) for text, item, kind in found)


def code(text):
    """A text as code in a cell of a table."""
    text = text.replace("|", "\\|")
    marks = "``" if "`" in text else "`"
    pad = " " if "`" in text or text != text.strip() else ""
    return f"{marks}{pad}{text}{pad}{marks}"


def table():
    """The whole document."""
    rows, crates = sorted(set(messages()), key=lambda row: (row[1], row[2], row[0], row[3])), {}
    for text, file, item, kind in rows:
        crate, _, rest = file.removeprefix("crates/").partition("/src/" if file.startswith("crates/") and "/src/" in file else "/")
        crates.setdefault(crate, []).append(f"| {code(text)} | {rest}: {item} | {kind} |\n")
    out = [HEAD, f"There are {len(rows)} messages.\n"]
    for crate, lines in sorted(crates.items()):
        out += [f"\n## {crate}\n| Text | Place | Kind |\n|---|---|---|\n", *lines]
    return "".join(out)


def self_test():
    """Cases that each rule of the script is about."""
    def one(source, path="crates/x/src/y.rs"):
        return list(rust(source, path))
    assert one('enum E {\n  /// Doc.\n  #[error("no {what}")]\n  NoSuch { what: u8 },\n}') == [("no {what}", "E::NoSuch", "error")]
    assert one('fn f() { Err(Error::told(c, format!("no \\"b\\" \\\n   here"))) }') == [('no "b" here', "f", "error")]
    assert one('impl Display for Refusal { fn fmt(&self) { f.write_str("it is a folder") } }') == [("it is a folder", "Refusal::fmt", "refusal")]
    assert one('fn f() { x.expect("there is one by now") }')[0][2] == "internal"
    assert one('#[expect(clippy::x, reason = "a test needs it here")]\nfn f() {}') == []
    assert one('#[arg(help = "the name of a file")] struct A;') == [] and one('// "not a message, a comment"\n') == []
    assert one('fn f() {}\n#[cfg(test)]\nmod tests { fn g() { panic!("not a message at all") } }') == []
    assert one('fn f() { println!("what a command shows") }') == [] and one('const USAGE: &str = "how it is called";') == []
    assert one('nc_errors! { BadId = -33, NC_EBADID, "NetCDF: Not a valid ID"; }') == [("NetCDF: Not a valid ID", "NC_EBADID", "error")]
    assert one("fn f<'a>(c: char) { match c { '\"' => bad(\"the level\"), _ => 0 } }") == [("the level", "f", "error")]
    source = 'class A:\n  def f(self):\n    raise ValueError(f"no {self.x}")\ndef g():\n  warnings.warn("old %s" % 1)\n'
    assert list(python(source)) == [("no {self.x}", "A.f", "error"), ("old %s", "g", "warning")]
    assert list(c('int f(int a)\n{\n    fprintf(stderr, "bad %s\\n", a);\n}\n')) == [("bad %s\\n", "f", "error")]
    assert code("a|b") == "`a\\|b`" and code("a `b`") == "`` a `b` ``"

def main():
    asked = sys.argv[1:]
    if asked not in ([], ["--check"], ["--self-test"]):
        sys.exit(__doc__)
    if asked:
        self_test()
    if asked == ["--check"] and (not TABLE.exists() or TABLE.read_text() != table()):
        sys.exit("docs/dev/messages.md is not what the source says: scripts/messages.py makes it anew")
    if not asked:
        TABLE.write_text(table())


if __name__ == "__main__":
    main()
