"""Networks in Relay, and how they are built and run."""

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.backend import te_compiler

from tvm_serenity.graph import Graph, Role
from tvm_serenity.relay import zoo

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "models"

tvm.autotvm.GLOBAL_SCOPE.silent = True
te_compiler.libinfo = functools.cache(te_compiler.libinfo)  # a third of the time of each build

SMALL = {"channels": 4, "size": 8}
ZOO: dict[str, tuple[str, dict[str, Any]]] = {
    "randwire-7": ("randwire", {"n": 8, "seed": 7, **SMALL}),
    "randwire-8": ("randwire", {"n": 6, "seed": 8, "stride": 1, **SMALL}),
    "randwire-er": ("randwire", {"n": 10, "model": "er", "seed": 3, **SMALL}),
    "randwire-ba": ("randwire", {"n": 9, "model": "ba", "m": 3, "layout": "NHWC", **SMALL}),
    "swiftnet-a": ("swiftnet-cell-a", {"size": 8}),
    "swiftnet-b": ("swiftnet-cell-b", {"size": 4}),
    "swiftnet-c": ("swiftnet-cell-c", {"size": 4}),
    "darts": ("darts-normal-cell", SMALL),
    "nasnet": ("nasnet-cell", SMALL),
    "amoebanet": ("amoebanet-cell", SMALL),
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

    with warnings.catch_warnings():  # TVM's importer uses names that ONNX deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        return relay.frontend.from_onnx(onnx.load(str(path)))[0]


class Layers:
    """Writes convolutions of one layout, float or quantised, with random weights."""

    def __init__(self, layout: str, quantised: bool, seed: int = 0) -> None:
        self.layout, self.quantised = layout, quantised
        self.axis = layout.index("C")
        self.rng = np.random.default_rng(seed)
        self.scale, self.zero = relay.const(0.05), relay.const(3, "int32")

    def input(self, channels: int, size: int) -> Any:
        shape = [{"N": 1, "C": channels}.get(a, size) for a in self.layout]
        return relay.var("x", shape=shape, dtype="int8" if self.quantised else "float32")

    def conv(self, x: Any, made: int, kernel: int = 3, relu: bool = True, depth: int = 0) -> Any:
        """A convolution; ``depth``: of so many channels, each by itself."""
        channels = depth or int(relay.transform.InferTypeLocal(x).shape[self.axis])
        letters = "OIHW" if self.layout == "NCHW" else ("HWOI" if depth else "HWIO")
        extents = {"O": made, "I": 1 if depth else channels, "H": kernel, "W": kernel}
        shape = [extents[a] for a in letters]
        options = {
            "padding": (kernel // 2, kernel // 2),
            "channels": made,
            "kernel_size": (kernel, kernel),
            "groups": depth or 1,
            "data_layout": self.layout,
            "kernel_layout": letters,
        }
        if not self.quantised:
            weight = self.rng.uniform(-0.3, 0.3, shape).astype("float32")
            y = relay.nn.conv2d(x, relay.const(weight), **options)
            y = relay.nn.bias_add(y, self.vector("float32", made), axis=self.axis)
            return relay.nn.relu(y) if relu else y
        weight = self.rng.integers(-128, 128, shape).astype("int8")
        scales = relay.const(self.rng.uniform(0.001, 0.01, made).astype("float32"))
        zero = relay.const(0, "int32")
        y = relay.qnn.op.conv2d(
            x,
            relay.const(weight),
            self.zero,
            zero,
            self.scale,
            scales,
            out_dtype="int32",
            **options,
        )
        y = relay.nn.bias_add(y, self.vector("int32", made), axis=self.axis)
        sums = relay.const(self.rng.uniform(0.0001, 0.0004, made).astype("float32"))
        y = relay.qnn.op.requantize(
            y, sums, zero, self.scale, self.zero, axis=self.axis, out_dtype="int8"
        )
        return relay.clip(y, 3, 127) if relu else y

    def vector(self, dtype: str, size: int) -> Any:
        return relay.const(self.rng.uniform(-9, 9, size).astype(dtype))

    def concat(self, parts: list[Any]) -> Any:
        if not self.quantised:
            return relay.concatenate(parts, axis=self.axis - 4)
        n = len(parts)
        return relay.qnn.op.concatenate(
            relay.Tuple(parts), [self.scale] * n, [self.zero] * n, self.scale, self.zero, self.axis
        )

    def add(self, x: Any, y: Any) -> Any:
        """A residual sum."""
        if not self.quantised:
            return relay.nn.relu(relay.add(x, y))
        one = (self.scale, self.zero)
        return relay.qnn.op.add(x, y, *one, *one, *one)

    def module(self, x: Any, *results: Any) -> Any:
        body = results[0] if len(results) == 1 else relay.Tuple(list(results))
        mod = tvm.IRModule.from_expr(relay.Function([x], body))
        return relay.transform.InferType()(mod)


def joined(layout: str, quantised: bool, size: int = 6) -> Any:
    """A concat of two pieces with several readers: dense, depthwise, pooling, a residual add."""
    to = Layers(layout, quantised)
    x = to.input(4, size)
    parts = [to.conv(x, 8, 1), to.conv(x, 6, 3)]
    whole = to.concat(parts)
    a = to.conv(whole, 5, 3)
    b = to.conv(to.conv(whole, 14, 3, depth=14), 5, 1)
    c = to.conv(relay.nn.max_pool2d(whole, (3, 3), padding=(1, 1), layout=layout), 5, 1)
    return to.module(x, to.add(a, to.conv(whole, 5, 1, relu=False)), b, c)


def wide() -> Any:
    """Three pieces of 16 channels, joined for a convolution to 4: partial sums need no concat."""
    to = Layers("NCHW", False)
    x = to.input(4, 6)
    return to.module(x, to.conv(to.concat([to.conv(x, 16, 1) for _ in range(3)]), 4))


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


def computed(mod: Any, values: dict[str, Any]) -> list[Any]:
    """What a module makes of inputs, built and run by TVM alone."""
    with context():
        return outputs(graph_executor_of(relay.build(mod, "llvm")), values)


def dataflow(graph: Graph) -> list[list[int]]:
    """For each op in order, the ops whose results it reads; -1 for an input."""
    constant = [t.role is Role.CONSTANT for t in graph.tensors]
    return [[graph.producer[t] for t in op.inputs if not constant[t]] for op in graph.ops]


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
