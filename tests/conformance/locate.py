"""Where a network goes wrong: the first kernel whose result LiteRT's tensors do not have."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.case import FILLS, Case
from tests.conformance.writer import Array
from tests.quantize.running import Machine, reference_of, with_all_results
from tvm_serenity import compat
from tvm_serenity.frontends import load
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import quantized_module


def first_difference(case: Case) -> str:
    """Return the first kernel that differs from LiteRT, and from which tensor; "" if none does.

    Every kernel's result is looked for among the tensors that LiteRT keeps, byte by byte; one that
    is not there is compared with the tensor of as many elements that it comes nearest to. What
    LiteRT does not store (a rescaled piece of a concat) is named too: only where ``check`` finds
    a difference is the answer of use.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(case.data)
        names = [tensor.name for tensor in load(path).graph.tensors]
        module = with_all_results(quantized_module(to_relax(path)))
    reference, machine = reference_of(case.data, keep=True), Machine(module)
    for fill in FILLS:
        inputs = reference.inputs(fill)
        kept = reference.run(inputs).tensors
        known = {array.tobytes() for array in kept.values()}
        found = machine.results(inputs)
        missing = [i for i, array in enumerate(found) if array.tobytes() not in known]
        if missing:
            first = missing[0]
            wrong, index, at = _nearest(found[first], kept)
            name = names[index] if index < len(names) else "no tensor of its size"
            values = f"{found[first].reshape(-1)[at]} instead of {kept[index].reshape(-1)[at]}"
            return (
                f"inputs {fill!r}: {_kernels(module)[first]}, tensor {index} {name!r} "
                f"at {at}: {values} ({wrong} of {found[first].size})"
            )
    return ""


def _kernels(module: Any) -> list[str]:
    """The kernel that makes each result."""
    bindings = [b for block in module["main"].body.blocks for b in block.bindings]
    called = [compat.called_kernel(b.value) for b in bindings if compat.is_call(b.value)]
    return [str(kernel.name_hint) for kernel in called if kernel is not None]


def _nearest(mine: Array, kept: Mapping[int, Array]) -> tuple[int, int, int]:
    """How many elements differ from the nearest tensor, which one that is, the first of them."""
    flat = mine.reshape(-1)
    wrong = {
        index: flat != array.reshape(-1)
        for index, array in kept.items()
        if array.size == mine.size and array.dtype == mine.dtype
    }
    index = min(wrong, key=lambda i: (int(wrong[i].sum()), i))
    return int(wrong[index].sum()), index, int(np.argmax(wrong[index]))
