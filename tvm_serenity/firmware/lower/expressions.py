"""Write TIR expressions as C without implicit conversions.

C computes on ``int`` where TIR computes on 8 or 16 bits, so the result of narrow arithmetic is cast
back. Signed left shifts are done on unsigned integers, because C leaves signed overflow undefined.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir.expr import Call, TensorLoad

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.integers import integer, literal, plain, real

_INFIX = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.Div: "/",
    tirx.Mod: "%",
    tirx.RShift: ">>",
    tirx.BitwiseAnd: "&",
    tirx.BitwiseOr: "|",
    tirx.BitwiseXor: "^",
}
_COMPARE = {
    tirx.EQ: "==",
    tirx.NE: "!=",
    tirx.LT: "<",
    tirx.LE: "<=",
    tirx.GT: ">",
    tirx.GE: ">=",
    tirx.And: "&&",
    tirx.Or: "||",
}
_MATH = {
    "nearbyint": "nearbyint",
    "round": "round",
    "trunc": "trunc",
    "floor": "floor",
    "ceil": "ceil",
    "fabs": "fabs",
    "exp": "exp",
    "exp2": "exp2",
    "log": "log",
    "log2": "log2",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "tanh": "tanh",
    "sinh": "sinh",
    "cosh": "cosh",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "atan": "atan",
    "erf": "erf",
    "pow": "pow",
    "fmod": "fmod",
}

_EXACT = {"nearbyint", "round", "trunc", "floor", "ceil", "fabs", "sqrt", "fmod"}
APPROXIMATED = frozenset(_MATH) - _EXACT | {"sigmoid", "rsqrt"}
"""Functions that libraries round differently."""

UNROLLED = 8
"""Windows and register tiles of up to this size are literals, so that compilers unroll them."""
LARGEST_SCALE = 1e30
"""Floats above it, and multiples of a half, are limits and rounding, the same in every model."""


def dtype_of(expr: tirx.Expr) -> str:
    """Return numpy's name of an expression's type."""
    dtype = expr.ty.dtype
    return str(getattr(dtype, "dtype", dtype))


def c_type(dtype: str, where: str) -> str:
    """Return the C name of a type; raise :class:`UnsupportedError` if C has none."""
    if dtype not in C_TYPES:
        raise UnsupportedError(f"{where}: type {dtype} has no counterpart in C")
    return C_TYPES[dtype]


def number(value: float, dtype: str, marked: bool) -> str:
    """Return a number as an exact C literal; ``marked``: as a mark, if models differ in it."""
    if dtype.startswith("float"):
        text = _real(float(value), dtype)
        scale = dtype == "float32" and 2 * value % 1 != 0 and abs(value) < LARGEST_SCALE
        return real(float(value), text) if marked and scale else text
    if dtype == "bool":
        return "true" if value else "false"
    if not marked or 0 <= value <= UNROLLED:
        return literal(int(value), dtype)
    return integer(int(value), dtype, one=True)


def _real(value: float, dtype: str) -> str:
    suffix = "f" if dtype == "float32" else ""
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = str(np.float32(value)) if dtype == "float32" else repr(value)
    return text + suffix


class Expressions:
    """Writes TIR expressions of the kernel named ``where`` as C.

    ``name`` returns the C name of a variable or buffer; ``is_scalar``: whether a buffer is a local
    variable. ``fixed_shapes``: numbers of the shape (in indices, loops and comparisons) are
    literals, so that compilers know them; other numbers are marked.
    """

    def __init__(
        self,
        where: str,
        name: Callable[[Any], str],
        is_scalar: Callable[[Any], bool],
        fixed_shapes: bool,
    ) -> None:
        self.where = where
        self.name = name
        self.is_scalar = is_scalar
        self.fixed_shapes = fixed_shapes
        self.marked = True

    def __call__(self, e: tirx.Expr) -> str:
        """Return ``e`` as a C expression that needs no parentheses around it."""
        return self._written(e)

    def of_shape(self, e: tirx.Expr) -> str:
        """Return ``e``, whose numbers are those of the shape."""
        marked, self.marked = self.marked, not self.fixed_shapes and self.marked
        text = self(e)
        self.marked = marked
        return text

    def _written(self, e: tirx.Expr) -> str:
        kind = type(e)
        if kind in (tirx.IntImm, tirx.FloatImm):
            text = number(e.value, dtype_of(e), self.marked)
            return f"({text})" if plain(text).startswith("-") else text
        if isinstance(e, tirx.Var):
            return self.name(e)
        if kind is TensorLoad:
            return self._load(e)
        if kind is tirx.Cast:
            return self._cast(e)
        if kind in _INFIX:
            return self._infix(e, _INFIX[kind])
        if kind in _COMPARE:
            return f"({self.of_shape(e.a)} {_COMPARE[kind]} {self.of_shape(e.b)})"
        if kind is tirx.LShift:
            return self._shift_left(e, [e.a, e.b])
        if kind is tirx.BitwiseNot:
            return self._narrowed(f"(~{self(e.a)})", e)
        if kind is tirx.Not:
            return f"(!{self(e.a)})"
        if kind in (tirx.Min, tirx.Max):
            helper = "min" if kind is tirx.Min else "max"
            return self._narrowed(f"{helper}_{_wide(dtype_of(e))}({self(e.a)}, {self(e.b)})", e)
        if kind is tirx.Select:
            return self._choice(e, e.condition, e.true_value, e.false_value)
        if kind is Call:
            return self._call(e)
        raise UnsupportedError(
            f"{self.where}: TIR expression {kind.__name__} cannot be written in C"
        )

    def _load(self, e: tirx.Expr) -> str:
        if self.is_scalar(e.source):
            return self.name(e.source)
        (index,) = e.indices
        return f"{self.name(e.source)}[{bare(self.of_shape(index))}]"

    def _cast(self, e: tirx.Expr) -> str:
        dtype = dtype_of(e)
        if dtype == "bool":
            return f"({self(e.value)} != 0)"
        return f"({c_type(dtype, self.where)}){self._operand(e.value)}"

    def _operand(self, e: tirx.Expr) -> str:
        """Return an expression in parentheses, unless a cast before it applies to all of it."""
        text = self(e)
        simple = text.startswith("(") or isinstance(e, tirx.Var | TensorLoad | tirx.IntImm)
        return text if simple else f"({text})"

    def _infix(self, e: tirx.Expr, sign: str) -> str:
        if type(e) is tirx.Mod and dtype_of(e).startswith("float"):
            return f"fmod{_float_suffix(dtype_of(e))}({self(e.a)}, {self(e.b)})"
        return self._narrowed(f"({self(e.a)} {sign} {self(e.b)})", e)

    def _narrowed(self, text: str, e: tirx.Expr) -> str:
        dtype = dtype_of(e)
        if dtype in ("int8", "uint8", "int16", "uint16"):
            return f"({C_TYPES[dtype]}){text if text.startswith('(') else f'({text})'}"
        return text

    def _choice(self, e: tirx.Expr, condition: tirx.Expr, yes: tirx.Expr, no: tirx.Expr) -> str:
        return self._narrowed(f"({self(condition)} ? {self(yes)} : {self(no)})", e)

    def _call(self, e: tirx.Expr) -> str:
        name = str(getattr(e.op, "name", "")).rpartition(".")[2]
        args = list(e.args)
        if name in ("call_pure_extern", "call_extern"):
            return f"{args[0].value}({', '.join(map(self, args[1:]))})"
        if name in ("if_then_else",):
            return self._choice(e, *args)
        if name == "likely":
            return self(args[0])
        if name == "clz":
            width = dtype_of(args[0]).removeprefix("u")
            return f"clz_{width}({self(args[0])})"
        if name == "reinterpret" and (dtype_of(args[0]), dtype_of(e)) == ("uint32", "float32"):
            return f"f32_of_bits({bare(self(args[0]))})"
        if name in _MATH:
            suffix = _float_suffix(dtype_of(e))
            return f"{_MATH[name]}{suffix}({', '.join(bare(self(a)) for a in args)})"
        if name == "sigmoid":
            x = self(args[0])
            return f"(1.0f / (1.0f + expf(-{x})))"
        raise UnsupportedError(
            f"{self.where}: the expression {name or e.op} cannot be written in C"
        )

    def _shift_left(self, e: tirx.Expr, args: list[Any]) -> str:
        dtype = dtype_of(e)
        if dtype.startswith("u"):
            return self._narrowed(f"({self(args[0])} << {self(args[1])})", e)
        wide = "uint64_t" if dtype == "int64" else "uint32_t"
        return f"({C_TYPES[dtype]})(({wide}){self._operand(args[0])} << {self(args[1])})"


def _wide(dtype: str) -> str:
    return {
        "int64": "i64",
        "uint64": "u64",
        "uint32": "u32",
        "float32": "f32",
        "float64": "f64",
    }.get(dtype, "i32")


def _float_suffix(dtype: str) -> str:
    return "f" if dtype == "float32" else ""


def bare(text: str) -> str:
    """Return an expression without enclosing parentheses."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]
