"""What is known of a kind of operator stands in its record: nowhere else is there a table of kinds.

A collection that names three or more registered kinds, or operators of TVM's that a record names,
is a second table. ``ELSEWHERE`` says of those that there are what else they are.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tvm_serenity import operators
from tvm_serenity.operators import OPERATORS, RELAX, RELAY

ROOT = Path(operators.__path__[0]).parent
MOST = 2
"""Kinds that code may name side by side."""
ELSEWHERE = {
    "frontends/_importable.py": "what TVM's importers convert, held against them by a test",
    "frontends/_onnx_fold.py": "what onnx's evaluator is trusted with while shapes are inferred",
    "frontends/_tflite_schema.py": "the numbers of all operators in the file's schema",
    "frontends/_tflite_unrolled.py": "what keeps state, which nothing inside of a loop may",
    "frontends/relax/_onnx_converters.py": "gaps of TVM's importer of ONNX, closed in Relax",
    "frontends/relax/_onnx_elements.py": "ONNX operators whose form in Relax is not TVM's",
    "kernels/vector_math.py": "functions of TIR's expressions that have polynomials",
    "onnx_session/storage.py": "where kernels of one version of onnxruntime write, as measured",
    "relax/channel_moves.py": "how channels run through Relax's moves, and these written of fewer",
    "relax/cortex_m.py": "regions between dequantize and quantize, as patterns of TVM's registry",
    "relax/quantize_rules.py": "rules for regions of Relax between dequantize and quantize",
    "relay/rewrite_emit.py": "which constants of Relay's operators are one number per channel",
    "sparse/perceptron.py": "names of layers of PyTorch and ONNX that a perceptron may have",
}
"""Files with such collections that are no facts of operators."""
KINDS = {*OPERATORS, *RELAX, *(name for name in RELAY if "." in name)}
PLAIN = {*RELAY, *(name.removeprefix("relax.") for name in RELAX)}
"""Names that are words as well: a collection is one of kinds where they are most of it."""


def named(node: ast.AST) -> list[str]:
    """Return the strings of a collection, or the words of a text that may be split into one."""
    if isinstance(node, ast.Dict):
        parts: list[ast.expr | None] = list(node.keys)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = list(node.elts)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split()
    else:
        return []
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]


def texts(tree: ast.AST) -> set[int]:
    """Return the docstrings and messages of a file by the identities of their nodes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            found.update(id(part) for part in node.values)
    return found


def tables(source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the kinds of every collection of kinds in a file."""
    tree = ast.parse(source)
    skipped = texts(tree)
    for node in ast.walk(tree):
        words = [] if id(node) in skipped else named(node)
        kinds = sorted({word for word in words if word in KINDS})
        plain = sorted({word for word in words if word in PLAIN})
        if len(kinds) > MOST or (len(plain) > MOST and 2 * len(plain) > len(words)):
            yield getattr(node, "lineno", 0), kinds or plain


def test_there_is_no_second_table_of_kinds() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {kinds}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.parent != ROOT / "operators" and str(path.relative_to(ROOT)) not in ELSEWHERE
        for line, kinds in tables(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_allowed_is_there(name: str) -> None:
    assert list(tables((ROOT / name).read_text()))


@pytest.mark.parametrize(
    "source",
    [
        'MAPS = ("ADD", "MUL", "RELU")',
        'WINDOWS = {"CONV_2D": 1, "MAX_POOL_2D": 2, "AVERAGE_POOL_2D": 3}',
        'NAMES = "ADD MUL RELU".split()',
        'MAPS = frozenset({"relax.add", "relax.nn.relu", "relax.tanh"})',
        'MAPS = {f"relax.{name}" for name in "add multiply tanh".split()}',
        'if kind in ["Add", "Relu", "Clip"]: pass',
    ],
)
def test_a_second_table_is_found(source: str) -> None:
    assert len(list(tables(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""ADD, MUL and RELU are said of, as is CONV_2D."""',
        'PAIR = ("ADD", "MUL")',
        'raise ValueError(f"{x}: ADD MUL RELU")',
    ],
)
def test_what_is_no_table_is_let_be(source: str) -> None:
    assert list(tables(source)) == []
