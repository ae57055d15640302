"""Attention token by token: transposes become index maps, and results stay LiteRT's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.builder import Net
from tests.conformance.quantise import integer_file, ranges
from tests.llvm import TARGET
from tests.quantize.running import REFERENCE

tvm = pytest.importorskip("tvm")

from tvm_serenity import compat  # noqa: E402
from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.kernels.permuted import SWAPPED, permuted  # noqa: E402
from tvm_serenity.kernels.spec_read import kind_of  # noqa: E402
from tvm_serenity.relax.pipeline import Steps, prepared  # noqa: E402
from tvm_serenity.relax.tokens_first import tokens_first  # noqa: E402

TOKENS, WIDE = 5, 8


def attention(net: Net, x: int, heads: int, form: str) -> int:
    """Attention as files have it: keys transposed with their channels, or by the product."""

    def parted(*axes: int) -> int:
        y = net.dense(x, WIDE, keep=True)
        if form == "shaped":  # one head: no byte moves
            return net.reshape(y, 1, 1, TOKENS, WIDE)
        return net.transpose(net.reshape(y, 1, TOKENS, heads, WIDE // heads), *axes)

    q, v = net.mul(parted(*SWAPPED), net.constant(0.5)), parted(*SWAPPED)
    turned = form == "keys"
    k = parted(0, 2, 3, 1) if turned else parted(*SWAPPED)
    scores = (
        net.op("BATCH_MATMUL", [q, k], (1, heads, TOKENS, TOKENS))
        if turned
        else net.batch_matmul(q, k, transposed=True)
    )
    y = net.batch_matmul(net.softmax(scores), v)
    y = y if form == "shaped" else net.transpose(y, *SWAPPED)
    return net.add(x, net.dense(net.reshape(y, 1, TOKENS, WIDE), WIDE, keep=True))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net = Net(7)
    x = net.input(1, TOKENS, WIDE)
    for heads, form in ((2, "product"), (4, "keys"), (1, "shaped")):
        x = attention(net, x, heads, form)
    net.output(x)
    path = tmp_path_factory.mktemp("model") / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    return path


def transposes(module: Any) -> int:
    text = module["main"].script()
    return int(text.count("R.permute_dims"))


def test_no_transpose_is_left_and_results_are_the_references(model: Path) -> None:
    module = to_relax(model)
    assert transposes(module) == 8
    ready = prepared(module, Steps(layout="last"), "llvm")
    assert transposes(ready.changed) == 0
    assert transposes(prepared(module, Steps(layout="given"), "llvm").changed) == 8
    inputs = np.random.default_rng(3).integers(-128, 128, (3, 1, TOKENS, WIDE)).astype(np.int8)
    REFERENCE.open("litert", model.read_bytes())
    for made in (ready.plain, ready.kernels):
        machine = tvm.relax.VirtualMachine(tvm.compile(made, target=TARGET), tvm.cpu())
        for x in inputs:
            (expected,) = REFERENCE.run([x]).outputs
            assert machine["main"](tvm.runtime.tensor(x)).numpy().tobytes() == expected.tobytes()


def test_modules_without_products_stay(model: Path, tmp_path: Path) -> None:
    net = Net(8)
    x = net.transpose(net.input(1, 2, 3, 4), *SWAPPED)
    net.output(net.transpose(net.unary("TANH", x), *SWAPPED))
    path = tmp_path / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    other = to_relax(path)
    assert tokens_first(other) is other
    changed = tokens_first(to_relax(model))
    assert tokens_first(changed) is changed  # its kernels have no record


def run(kernel: Any, arrays: list[Any], shape: tuple[int, ...]) -> Any:
    made = tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    result = tvm.runtime.tensor(np.zeros(shape, np.int8))
    tvm.compile(made, target=TARGET)["main"](*map(tvm.runtime.tensor, arrays), result)
    return result.numpy()


def test_a_permuted_product_reads_what_the_transpose_would_have_written(model: Path) -> None:
    kernels = [f for f in to_relax(model).functions.values() if compat.is_prim_func(f)]
    ranks = [[len(compat.buffer_shape(p)) for p in f.params] for f in kernels]
    kernel = kernels[ranks.index([4, 4, 4])]
    rng, shapes = np.random.default_rng(4), [compat.buffer_shape(p) for p in kernel.params]
    given = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes[:2]]
    expected = run(kernel, given, shapes[2]).transpose(SWAPPED)
    stored = [array.transpose(SWAPPED).copy() for array in given]
    made = permuted(kernel, dict.fromkeys(range(3), SWAPPED))
    assert np.array_equal(run(made, stored, expected.shape), expected)
    wrong = permuted(kernel, {0: SWAPPED, 2: SWAPPED})  # reads the stored keys as the file's
    misread = [stored[0], stored[1].reshape(shapes[1])]
    assert not np.array_equal(run(wrong, misread, expected.shape), expected)


def qdq_attention(path: Path) -> Path:
    """An ONNX block of two heads as onnxruntime quantises it: its softmax stays in float."""
    onnx = pytest.importorskip("onnx")
    quantization = pytest.importorskip("onnxruntime.quantization")
    rng, make, shape = np.random.default_rng(2), onnx.helper, [1, TOKENS, WIDE]
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(array: Any) -> str:
        constants.append(onnx.numpy_helper.from_array(np.asarray(array), f"c{len(constants)}"))
        return str(constants[-1].name)

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(make.make_node(kind, inputs, [f"v{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def dense(x: str) -> str:
        weights = rng.normal(0, WIDE**-0.5, (WIDE, WIDE)).astype(np.float32)
        return op("MatMul", x, constant(weights))

    def parted(x: str, axes: list[int]) -> str:
        apart = constant(np.array([1, TOKENS, 2, WIDE // 2]))
        return op("Transpose", op("Reshape", dense(x), apart), perm=axes)

    x = dense("x")
    q, k, v = parted(x, [0, 2, 1, 3]), parted(x, [0, 2, 3, 1]), parted(x, [0, 2, 1, 3])
    scores = op("Mul", op("MatMul", q, k), constant(np.float32(0.5)))
    y = op("Transpose", op("MatMul", op("Softmax", scores), v), perm=list(SWAPPED))
    y = op("Add", x, dense(op("Reshape", y, constant(np.array(shape)))))
    sides = [make.make_tensor_value_info(name, 1, shape) for name in ("x", y)]
    graph = make.make_graph(nodes, "attention", sides[:1], sides[1:], constants)
    given = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    draws = [{"x": rng.normal(size=shape).astype(np.float32)} for _ in range(4)]

    class Drawn(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined]
        def get_next(self) -> Any:
            return draws.pop() if draws else None

    form = quantization.QuantFormat.QDQ
    quantization.quantize_static(
        given, path, Drawn(), quant_format=form, activation_type=quantization.QuantType.QInt8
    )
    return path


def test_quantised_onnx_models_with_a_softmax_in_float(tmp_path: Path) -> None:
    from tvm_serenity.relax.rows_read import read_rows

    module = to_relax(qdq_attention(tmp_path / "qdq.onnx"))
    given = prepared(module, Steps(layout="given"), "llvm")
    ready = prepared(module, Steps(layout="last"), "llvm")
    assert (transposes(given.changed), transposes(ready.changed)) == (4, 0)
    rows = read_rows(ready.plain, "net").network
    assert sum(None in one.needs and one.splits for one in rows.layers) == 2
    made_output = rows.producer[rows.outputs[0]]
    assert [i for i, one in enumerate(rows.layers) if one.whole] in ([], [made_output])
    x = tvm.runtime.tensor(np.random.default_rng(5).normal(size=(1, TOKENS, WIDE)).astype("f4"))
    results = [
        tvm.relax.VirtualMachine(tvm.compile(one.kernels, target="llvm"), tvm.cpu())["main"](x)
        for one in (given, ready)
    ]
    assert np.array_equal(results[0].numpy(), results[1].numpy())


def test_a_kernel_with_multipliers_per_channel_is_permuted(tmp_path: Path) -> None:
    """Its record needs the call's constants, which are not at hand."""
    net = Net(7)
    net.output(net.conv(net.input(1, 4, 6, 3), 5, 1))
    path = tmp_path / "net.tflite"
    path.write_bytes(integer_file(net, ranges(net, REFERENCE)))
    functions = to_relax(str(path)).functions.values()
    (kernel,) = (f for f in functions if compat.is_prim_func(f) and kind_of(f) == "Convolution")
    made = permuted(kernel, {len(kernel.params) - 1: SWAPPED})
    assert tuple(compat.buffer_shape(kernel.params[-1])) == (1, 4, 6, 5)
    assert tuple(compat.buffer_shape(made.params[-1])) == (1, 6, 4, 5)
    assert kind_of(made) is None
