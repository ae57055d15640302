"""Networks in Relay, and how they are built and run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

from tvm_serenity.relay import zoo

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "models"

tvm.autotvm.GLOBAL_SCOPE.silent = True  # type: ignore[attr-defined]

SMALL = {"channels": 4, "size": 8}
ZOO: dict[str, tuple[str, dict[str, Any]]] = {
    "randwire-7": ("randwire", {"n": 8, "seed": 7, **SMALL}),
    "randwire-8": ("randwire", {"n": 10, "seed": 8, **SMALL}),
    "randwire-er": ("randwire", {"n": 10, "model": "er", "seed": 3, **SMALL}),
    "randwire-ba": (
        "randwire",
        {"n": 9, "model": "ba", "m": 3, "seed": 4, "layout": "NHWC", **SMALL},
    ),
    "swiftnet-a": ("swiftnet-cell-a", {"size": 8}),
    "swiftnet-b": ("swiftnet-cell-b", {"size": 6, "layout": "NHWC"}),
    "darts": ("darts-normal-cell", SMALL),
    "nasnet": ("nasnet-cell", SMALL),
}
ONNX = {
    "resnet8": "mlperf_tiny/ic_resnet8_fp32.onnx",
    "shufflenet": "onnx_light/light_shufflenet.onnx",
}
NAMES = [*ZOO, *ONNX]


def module(name: str) -> Any:
    """The Relay module of a network; a test of a shared model that is absent is skipped."""
    if name in ZOO:
        spec, params = ZOO[name]
        return zoo.build(spec, **params)
    path = SHARED / ONNX[name]
    if not path.is_file():
        import pytest

        pytest.skip(f"{path.name} is not in the shared data")
    import onnx

    return relay.frontend.from_onnx(onnx.load(str(path)))[0]


def context(**config: Any) -> Any:
    """The context everything here is optimised and built in."""
    return tvm.transform.PassContext(
        opt_level=3, disabled_pass=["AlterOpLayout"], config=config or None
    )


def inputs(mod: Any, seed: int = 0) -> dict[str, Any]:
    """A value for every parameter of ``main``."""
    rng = np.random.default_rng(seed)
    result = {}
    for param in mod["main"].params:
        shape = [int(extent) for extent in param.checked_type.shape]
        if param.checked_type.dtype.startswith("float"):
            result[param.name_hint] = rng.uniform(-1, 1, shape).astype("float32")
        else:
            result[param.name_hint] = rng.integers(-128, 128, shape).astype("int8")
    return result


def outputs(executor: Any, values: dict[str, Any]) -> list[Any]:
    """What an executor makes of inputs."""
    executor.set_input(**values)
    executor.run()
    return [executor.get_output(i).numpy().copy() for i in range(executor.get_num_outputs())]


def graph_executor_of(built: Any) -> Any:
    """TVM's executor for a built or loaded module."""
    return graph_executor.GraphModule(built["default"](tvm.cpu()))


@contextmanager
def recorded_calls() -> Iterator[list[str]]:
    """What is built inside records the name of every kernel when it runs, in the list."""
    calls: list[str] = []

    def record(name: str) -> int:
        calls.append(str(name))
        return 0

    tvm.register_func("serenity.tests.record", record, override=True)

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def instrument(function: Any, _module: Any, _context: Any) -> Any:
        name = tvm.tir.StringImm(str(function.attrs["global_symbol"]))
        call = tvm.tir.Evaluate(tvm.tir.call_packed("serenity.tests.record", name))
        return function.with_body(tvm.tir.SeqStmt([call, function.body]))

    with context(**{"tir.add_lower_pass": [(1, instrument)]}):
        yield calls
