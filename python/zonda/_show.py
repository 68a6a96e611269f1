"""How groups and variables look, as text and in notebooks. Nothing here reads data."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from . import types

if TYPE_CHECKING:
    from .group import Group
    from .variable import Variable

# What is shown of long values and long lists.
_WIDTH = 68
_MOST = 200

_STYLE = (
    "<style>.zonda{font-family:var(--jp-code-font-family,monospace);font-size:12px}.zonda table{margin:0}"
    ".zonda td,.zonda th{text-align:left;padding:1px 10px 1px 0}.zonda details{margin-left:12px}</style>"
)


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _bytes(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


def _closed(group: Group) -> str | None:
    return None if group.dataset.is_open else f"<closed zonda.{type(group).__name__} {group.dataset.file_path!r}>"


def _head(group: Group) -> str:
    if group is group.dataset:
        return f"zonda.Dataset {group.dataset.file_path!r} ({group.dataset.format})"
    return f"zonda.Group {group.path!r}"


def _storage(variable: Variable) -> str:
    info = variable.info
    text = str(info["storage"])
    if info["chunks"] is not None:
        text = "chunks " + "x".join(map(str, info["chunks"]))
    for number, name, params in info["filters"]:
        text += f", {number if name is None else name}" + (f"({','.join(map(str, params))})" if params else "")
    return text


def group(of: Group) -> str:
    """A group as text."""
    closed = _closed(of)
    if closed:
        return closed
    lines = [f"<{_head(of)}>"]
    dims = list(of.dims.items())
    if dims:
        shown = ", ".join(f"{name}: {dim.size}{' (unlimited)' if dim.is_unlimited else ''}" for name, dim in dims[:_MOST])
        lines.append(f"Dimensions:  {shown}{', ...' if len(dims) > _MOST else ''}")
    for title, entries in (
        ("Types", [f"{name} ({type(kind).__name__})" for name, kind in of.types.items()]),
        ("Variables", [_line(variable) for variable in list(of.variables.values())[:_MOST]]),
        ("Groups", list(of.groups)),
        ("Attributes", [f"{name}: {_short(value)}" for name, value in of.attrs.as_dict().items()]),
    ):
        if entries:
            lines.append(f"{title}:")
            lines.extend(f"    {entry}" for entry in entries[:_MOST])
    if len(of) > _MOST:
        lines.append(f"({len(of)} variables)")
    return "\n".join(lines)


def _line(of: Variable) -> str:
    dims = ", ".join(of.dims)
    return f"{of.name} ({dims}) {types.text(of.datatype)} {_bytes(of.nbytes)}"


def variable(of: Variable) -> str:
    """A variable as text."""
    closed = _closed(of.group)
    if closed:
        return closed.replace("Dataset", "Variable", 1).replace("zonda.Group", "zonda.Variable", 1)
    sizes = ", ".join(f"{name}: {size}" for name, size in zip(of.dims, of.shape))
    lines = [f"<zonda.Variable {of.name!r} ({sizes}) {types.text(of.datatype)}>", f"Storage: {_storage(of)}"]
    attrs = of.attrs.as_dict()
    if attrs:
        lines.append("Attributes:")
        lines.extend(f"    {name}: {_short(value)}" for name, value in attrs.items())
    return "\n".join(lines)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    cells = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return "<table>" + "".join(cells) + "</table>"


def _section(title: str, inner: str, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}</summary>{inner}</details>"


def _attrs_html(values: dict[str, Any]) -> str:
    return _section(f"Attributes ({len(values)})", _table([(name, _short(value)) for name, value in values.items()]))


def _inner_html(of: Group) -> str:
    parts = []
    dims = of.dims
    if dims:
        rows = [(name, str(dim.size), "unlimited" if dim.is_unlimited else "") for name, dim in list(dims.items())[:_MOST]]
        parts.append(_section(f"Dimensions ({len(dims)})", _table(rows), True))
    if len(of):
        rows_of_variables = [
            (one.name, f"({', '.join(one.dims)})", types.text(one.datatype), _bytes(one.nbytes), _storage(one))
            for one in list(of.variables.values())[:_MOST]
        ]
        parts.append(_section(f"Variables ({len(of)})", _table(rows_of_variables), True))
    attrs = of.attrs.as_dict()
    if attrs:
        parts.append(_attrs_html(attrs))
    return "".join(parts)


def group_html(of: Group) -> str:
    """A group for notebooks. All groups below it are in it, each as deep as it lies and none open."""
    closed = _closed(of)
    if closed:
        return f"<pre>{escape(closed)}</pre>"
    parts = [_inner_html(of)]
    for number, inner in enumerate(of.walk()):
        if number == 0:
            continue
        if number > _MOST:
            parts.append("<p>...</p>")
            break
        parts.append(_section(f"Group {inner.path}", _inner_html(inner)))
    return f"{_STYLE}<div class='zonda'><b>{escape(_head(of))}</b>{''.join(parts)}</div>"


def variable_html(of: Variable) -> str:
    """A variable for notebooks."""
    closed = _closed(of.group)
    if closed:
        return f"<pre>{escape(closed)}</pre>"
    rows = [
        ("dimensions", ", ".join(f"{name}: {size}" for name, size in zip(of.dims, of.shape))),
        ("type", types.text(of.datatype)),
        ("size", _bytes(of.nbytes)),
        ("storage", _storage(of)),
    ]
    head = escape(f"zonda.Variable {of.name!r}")
    return f"{_STYLE}<div class='zonda'><b>{head}</b>{_table(rows)}{_attrs_html(of.attrs.as_dict())}</div>"
