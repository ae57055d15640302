"""One meaning a name: a class is defined once, or every namesake is the same notion elsewhere.

Names that begin with ``_`` belong to their file and may be anywhere.
"""

import ast
from collections import Counter
from pathlib import Path

import tvm_serenity

ROOT = Path(tvm_serenity.__file__).parent
NAMESAKES = {
    "BoundGraph": "a graph and what it was read off: in Relax, in Relay",
    "Calls": "what runs an operator: written into a module, written in C",
    "Case": "one distinct kernel that is compared with TVM's: its TIR, its C",
    "Converter": "TVM's converter of TFLite operators: what is used of it, what was made of it",
    "Importer": "an importer of TVM as it is used here: of ONNX, of PyTorch",
    "Interrupted": "Ctrl-C with what was found until then: in a search, in a sweep",
    "Progress": "the best so far and its bound, as searches report them",
    "Reading": "a net and what it was read from: in Relax, in Relay",
    "Rewriting": "what was done to a module: in Relax, in Relay",
    "SerenityRewrite": "the pass in Relax, and in Relay",
    "SerenitySchedule": "the pass in Relax, and in Relay",
    "Source": "what a node of a net was read from: in Relax, in Relay",
    "Tensor": "a value: of a graph, of a firmware's program",
    "Trace": "what moved between two memories, in order: for tensors, for sparse networks",
    "Traffic": "how much moved between two memories: for tensors, for sparse networks",
    "Core": "a processor in a board's file; the searches, named as in the native module",
}


def test_classes_are_namesakes_only_where_they_mean_the_same() -> None:
    files = {path.resolve() for folder in (ROOT, ROOT / "passes") for path in folder.rglob("*.py")}
    seen = Counter(
        node.name
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(seen) > 300
    assert {name for name, times in seen.items() if times > 1} == set(NAMESAKES)
