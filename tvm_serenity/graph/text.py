"""The text form of a graph: one line per operator, for reading, writing and bug reports.

    graph example                                  # optional name; '#' starts a comment
    input x[1,8,8,3]u8                             # shape and type, or bytes: x[192]
    const w[16,3,3,3]i8
    state h[128]f32
    conv conv2d: x w -> y[1,8,8,16]u8; workspace 256
    act relu: y -> z[1,8,8,16]u8; in-place y       # z may take y's storage if y dies
    flat reshape: z -> f[1024]u8; view z           # f shares z's storage
    output f
    external x f                                   # tensors in the caller's memory

An operator line is ``NAME [KIND]: INPUTS -> OUTPUTS[; option ...]``. At its first occurrence, a
tensor has a size; the type follows the bracket without a space. At later occurrences it has only
its name. Names with spaces or any of ``[]:;,"#`` are written as JSON strings.
``parse(dump(graph))`` equals ``graph`` up to the order of its tensors.
"""

import gc
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tvm_serenity.errors import GraphError, ParseError
from tvm_serenity.graph.network import Graph
from tvm_serenity.graph.parts import Op, Role, Tensor

DTYPES = {
    "bool": ("bool", 1),
    "i8": ("int8", 1),
    "u8": ("uint8", 1),
    "i16": ("int16", 2),
    "u16": ("uint16", 2),
    "i32": ("int32", 4),
    "u32": ("uint32", 4),
    "i64": ("int64", 8),
    "u64": ("uint64", 8),
    "f16": ("float16", 2),
    "bf16": ("bfloat16", 2),
    "f32": ("float32", 4),
    "f64": ("float64", 8),
}
"""Maps a short type name to numpy's name and the bytes per element."""

_SHORT = {name: (short, width) for short, (name, width) in DTYPES.items()}
_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>\#.*)|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<arrow>->)"""
    r"""|(?P<close>\](?:(?:bool|bf16|[iu](?:8|16|32|64)|f(?:16|32|64))(?![^\s\[\]:;,\#]))?)"""
    r"""|(?P<mark>[\[:;,])|(?P<bare>(?:(?!->)[^\s"\[\]:;,#])+))"""
)
_WORD = r"(?:(?!->)[^\s\"\[\]:;,#])+"
_PLAIN = re.compile(rf"({_WORD})(?: ({_WORD}))?:((?: {_WORD})*) -> ({_WORD})\[([0-9]+)\]")
"""An operator line with known inputs and one new output in bytes, as most lines of large files."""
_BARE = re.compile(_WORD)
_ROLES = {"input": Role.ACTIVATION, "const": Role.CONSTANT, "state": Role.STATE}


def parse(text: str, name: str = "graph") -> Graph:
    """Return the graph that ``text`` describes; raise :class:`ParseError`, which names the line."""
    with _without_collection():
        return _parsed(text, name)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable the cyclic collector in the block, and move new objects to its oldest generation.

    Otherwise the collector would visit the growing graph repeatedly, and once more afterwards,
    which takes half a second per million operators.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.freeze()
            gc.unfreeze()  # Now all objects are in the oldest generation.
            gc.enable()


def _parsed(text: str, name: str) -> Graph:
    reader = _Reader(name)
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            if not reader.plain(line):
                reader.line(list(_tokens(line)))
        except GraphError:
            raise
        except (ParseError, ValueError, StopIteration) as error:
            reason = str(error) or "the line ends too early"
            raise ParseError(f"{name}, line {number}: {reason}") from None
    return Graph(
        reader.name,
        tuple(reader.tensors),
        tuple(reader.ops),
        tuple(reader.inputs),
        tuple(reader.outputs),
    )


def dump(graph: Graph) -> str:
    """Return the text form of ``graph``."""
    declared: set[int] = set()

    def spell(tensor: int) -> str:
        if tensor in declared:
            return _quote(graph.tensors[tensor].name)
        declared.add(tensor)
        return _declare(graph.tensors[tensor])

    lines = [f"graph {_quote(graph.name)}"]
    lines += [f"input {spell(t)}" for t in graph.inputs]
    for word, role in (("const", Role.CONSTANT), ("state", Role.STATE)):
        lines += [
            f"{word} {spell(i)}"
            for i, t in enumerate(graph.tensors)
            if t.role is role and i not in declared
        ]
    for op in graph.ops:
        head = f"{_quote(op.name)} {_quote(op.kind)}" if op.name and op.kind else _heads(op)
        inputs = " ".join(map(spell, op.inputs))
        outputs = " ".join(map(spell, op.outputs))
        line = f"{head}: {inputs} -> {outputs}" if inputs else f"{head}: -> {outputs}"
        if op.view_of is not None:
            line += f"; view {spell(op.view_of)}"
        if op.in_place:
            line += "; in-place " + " ".join(map(spell, op.in_place))
        if op.over:
            line += f"; over {op.over_bytes} " + " ".join(map(spell, op.over))
        if op.workspace_bytes:
            line += f"; workspace {op.workspace_bytes}"
        lines.append(line.rstrip())
    if graph.outputs:
        lines.append("output " + " ".join(spell(t) for t in graph.outputs))
    external = [i for i, t in enumerate(graph.tensors) if t.role is Role.EXTERNAL]
    if external:
        lines.append("external " + " ".join(spell(t) for t in external))
    return "\n".join(lines) + "\n"


@dataclass
class _Reader:
    """The state of the parser."""

    name: str
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    number: dict[str, int] = field(default_factory=dict)

    def plain(self, line: str) -> bool:
        """Parse a line that matches ``_PLAIN`` and return True; return False for other lines."""
        match = _PLAIN.fullmatch(line)
        if match is None:
            return False
        name, kind, read, result, size = match.groups()
        inputs = tuple(map(self.number.get, read.split()))
        if None in inputs or result in self.number:
            return False
        self.ops.append(Op(name, kind or "", inputs, (len(self.tensors),)))  # type: ignore[arg-type]
        self.number[result] = len(self.tensors)
        self.tensors.append(Tensor(result, int(size)))
        return True

    def line(self, tokens: list[str]) -> None:
        if not tokens:
            return
        if ":" in tokens:
            self.op(tokens)
        elif tokens[0] == "graph" and len(tokens) == 2:
            self.name = _unquote(tokens[1])
        elif tokens[0] in _ROLES:
            tensors = self.tensor_list(tokens[1:], _ROLES[tokens[0]])
            if tokens[0] == "input":
                self.inputs += tensors
        elif tokens[0] == "external":
            for tensor in self.tensor_list(tokens[1:]):
                self.tensors[tensor] = replace(self.tensors[tensor], role=Role.EXTERNAL)
        elif tokens[0] == "output":
            self.outputs += self.tensor_list(tokens[1:])
        else:
            raise ParseError(
                "expected 'input', 'const', 'state', 'output', 'external' or "
                "'NAME: INPUTS -> OUTPUTS'"
            )

    def op(self, tokens: list[str]) -> None:
        colon = tokens.index(":")
        if colon not in (1, 2) or "->" not in tokens:
            raise ParseError("an operator line must be 'NAME [KIND]: INPUTS -> OUTPUTS'")
        arrow = tokens.index("->")
        end = tokens.index(";") if ";" in tokens else len(tokens)
        inputs = self.tensor_list(tokens[colon + 1 : arrow])
        outputs = self.tensor_list(tokens[arrow + 1 : end])
        plain = Op(
            _unquote(tokens[0]),
            _unquote(tokens[1]) if colon == 2 else "",
            tuple(inputs),
            tuple(outputs),
        )
        self.ops.append(self.options(plain, tokens[end:]))

    def options(self, op: Op, tokens: list[str]) -> Op:
        for option in _split(tokens, ";"):
            if option[0] == "view" and len(option) == 2:
                op = replace(op, view_of=self.tensor_list(option[1:])[0])
            elif option[0] == "in-place" and len(option) > 1:
                op = replace(op, in_place=tuple(self.tensor_list(option[1:])))
            elif option[0] == "over" and len(option) > 2:
                over = tuple(self.tensor_list(option[2:]))
                op = replace(op, over=over, over_bytes=int(option[1]))
            elif option[0] == "workspace" and len(option) == 2:
                op = replace(op, workspace_bytes=int(option[1]))
            else:
                raise ParseError(
                    f"unknown option {' '.join(option)!r}; the options are 'view TENSOR', "
                    "'in-place TENSORS', 'over BYTES TENSORS' and 'workspace BYTES'"
                )
        return op

    def tensor_list(self, tokens: list[str], role: Role | None = None) -> list[int]:
        result = []
        rest = iter([t for t in tokens if t != ","] if "[" not in tokens else tokens)
        pending = next(rest, None)
        while pending is not None:
            if pending == ",":
                pending = next(rest, None)
                continue
            if pending in ("[", ":", ";", "->") or pending.startswith("]"):
                raise ParseError(f"expected a tensor's name, got {pending!r}")
            name, pending = _unquote(pending), next(rest, None)
            if pending == "[":
                dims, dtype, pending = _dims(rest)
                result.append(self.declare(name, dims, dtype, role or Role.ACTIVATION))
            elif name in self.number and role is None:
                result.append(self.number[name])
            else:
                raise ParseError(
                    f"tensor {name!r} is new, so it needs a size here, for example {name}[64]"
                )
        return result

    def declare(self, name: str, dims: list[int], dtype: str, role: Role) -> int:
        if name in self.number:
            raise ParseError(f"tensor {name!r} is declared twice")
        self.number[name] = len(self.tensors)
        if dtype:
            full, width = DTYPES[dtype]
            self.tensors.append(Tensor(name, math.prod(dims) * width, tuple(dims), full, role))
        elif len(dims) == 1:
            self.tensors.append(Tensor(name, dims[0], role=role))
        else:
            raise ParseError(f"tensor {name!r}: a shape needs a type, for example {name}[2,3]i8")
        return self.number[name]


def _dims(rest: Iterator[str]) -> tuple[list[int], str, str | None]:
    """Parse the tokens of ``1,2,3]i8``; return the dimensions, the type and the next token."""
    dims: list[int] = []
    for token in rest:
        if token.startswith("]"):
            return dims, token[1:], next(rest, None)
        if token != ",":
            dims.append(int(token))
    raise ParseError("']' is missing")


def _tokens(line: str) -> Iterator[str]:
    at, end = 0, len(line.rstrip())
    while at < end:
        match = _TOKEN.match(line, at)
        if match is None:
            raise ParseError(f"cannot read {line[at:].strip()[:20]!r}")
        at = match.end()
        if match.lastgroup != "comment":
            yield match.group(match.lastgroup or 0)


def _split(tokens: list[str], mark: str) -> Iterator[list[str]]:
    part: list[str] = []
    for token in [*tokens, mark]:
        if token != mark:
            part.append(token)
        elif part:
            yield part
            part = []


def _quote(name: str) -> str:
    return name if name.isidentifier() or _BARE.fullmatch(name) else json.dumps(name)


def _unquote(token: str) -> str:
    return str(json.loads(token)) if token.startswith('"') else token


def _heads(op: Op) -> str:
    """Return the beginning of an op's line: its name and kind, if it has them."""
    return " ".join(_quote(part) for part in (op.name, op.kind) if part)


def _declare(tensor: Tensor) -> str:
    if tensor.shape is None:
        return f"{_quote(tensor.name)}[{tensor.size_bytes}]"
    short, width = _SHORT.get(tensor.dtype, ("", 0))
    if math.prod(tensor.shape) * width != tensor.size_bytes or not short:
        return f"{_quote(tensor.name)}[{tensor.size_bytes}]"
    return f"{_quote(tensor.name)}[{','.join(map(str, tensor.shape))}]{short}"
