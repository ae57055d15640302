"""Integer modules compiled and run, to compare with a reference runtime."""

import atexit
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.writer import Array
from tests.llvm import TARGET

tvm = pytest.importorskip("tvm")
from tvm import relax  # noqa: E402

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.passes import serenity_pipeline  # noqa: E402
from tvm_serenity.relax.attributes import STATES  # noqa: E402
from tvm_serenity.relax.quantize import kept_float, quantized_module  # noqa: E402
from tvm_serenity.validation.references import Fill, ReferenceRuntime, runtime_for  # noqa: E402

REFERENCE = ReferenceRuntime()
atexit.register(REFERENCE.close)


def reference_of(data: bytes, keep: bool = False) -> ReferenceRuntime:
    """The runtime that the file is held against, with the file open; one at a time."""
    REFERENCE.open(runtime_for("model.tflite", data), data, keep=keep)
    return REFERENCE


class Machine:
    """A module with integer kernels on the Relax VM, state by state."""

    def __init__(self, module: Any, target: Any = TARGET) -> None:
        executable = tvm.compile(
            module, tvm.target.Target(target), relax_pipeline=serenity_pipeline(validate=False)
        )
        self.machine = relax.VirtualMachine(executable, tvm.cpu())
        main = module["main"]
        fills = [int(v) for v in (main.attrs or {}).get(STATES, [])]
        params = main.params[len(main.params) - len(fills) :]
        self.first = [
            np.full([int(e) for e in p.ty.shape.values], fill, str(p.ty.dtype.dtype))
            for p, fill in zip(params, fills, strict=True)
        ]
        self.states = self.first

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        self.states = self.first
        return self.step(inputs)

    def step(self, inputs: Sequence[Array]) -> list[Array]:
        arrays = self.results(inputs)
        count = len(arrays) - len(self.states)
        self.states = arrays[count:]
        return arrays[:count]

    def results(self, inputs: Sequence[Array]) -> list[Array]:
        """All results, those that are states too."""
        arguments = [tvm.runtime.tensor(a) for a in (*inputs, *self.states)]
        found = self.machine["main"](*arguments)
        single = isinstance(found, tvm.runtime.Tensor)
        return [found.numpy()] if single else [part.numpy() for part in found]


def integer_module(data: bytes, folder: Path, rounding: str = "tflite") -> Any:
    """The module of a file, with nothing left in float."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    module = quantized_module(to_relax(path, integers=rounding), rounding)
    assert kept_float(module) == ()
    return module


def with_all_results(module: Any) -> Any:
    """The module with the results of all kernels as its results."""
    plain = relax.transform.ToNonDataflow()(module)
    main = plain["main"]
    bindings = [b for block in main.body.blocks for b in block.bindings]
    made = [b.var for b in bindings if _is_kernel_call(b.value)]
    body = relax.SeqExpr(main.body.blocks, relax.Tuple(made))
    types = relax.TupleType([var.ty for var in made])
    changed = tvm.IRModule(dict(plain.functions.items()), attrs=plain.attrs)
    changed["main"] = relax.Function(main.params, body, types, main.is_pure, main.attrs)
    return changed


def assert_every_result_exact(data: bytes, module: Any, fill: Fill) -> int:
    """Find every result of ``main``, bit by bit, among LiteRT's tensors; return their number."""
    reference, machine = reference_of(data, keep=True), Machine(module)
    inputs = reference.inputs(fill)
    known = {array.tobytes() for array in reference.run(inputs).tensors.values()}
    found = machine.results(inputs)
    missing = [i for i, array in enumerate(found) if array.tobytes() not in known]
    assert not missing
    return len(found)


def assert_exact(
    data: bytes,
    module: Any,
    fills: Iterable[Fill] = (0, 1, "min", "max", "zero"),
    varied: bool = True,
    target: Any = "llvm",
) -> None:
    """Compare bit by bit with the reference runtime; ``varied``: runs must differ in outputs."""
    reference, machine = reference_of(data), Machine(module, target)
    seen = set()
    for fill in fills:
        inputs = reference.inputs(fill)
        wanted = reference.run(inputs).outputs
        found = machine.run(inputs)
        assert [a.dtype for a in found] == [a.dtype for a in wanted]
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=f"inputs {fill!r}")
            seen.add(theirs.tobytes())
    assert not varied or len(seen) > 1


def _is_kernel_call(value: Any) -> bool:
    return bool(compat.is_call(value)) and compat.called_kernel(value) is not None
