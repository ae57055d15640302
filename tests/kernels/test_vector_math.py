"""Polynomials in place of the C library's functions, against numpy and math in 64 bits."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

tvm = pytest.importorskip("tvm")

from tvm import te, tirx  # noqa: E402

from tvm_serenity.kernels import vector_math  # noqa: E402
from tvm_serenity.kernels.vector_math import in_vectors  # noqa: E402
from tvm_serenity.tvm_targets import native  # noqa: E402

TARGETS = {"native": native(), "plain": tvm.target.Target("llvm")}
ULP = 2.0**-23


def exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


@dataclass(frozen=True)
class Wanted:
    """TVM's function, the truth, and the largest error: of the result, or of any."""

    op: Callable[[Any], Any]
    truth: Callable[[float], float]
    relative: float
    absolute: float = 1.5e-45


WANTED = {
    "exp": Wanted(tirx.exp, exp, ULP),
    "erf": Wanted(tirx.erf, math.erf, 4e-7),
    "tanh": Wanted(tirx.tanh, math.tanh, 4e-7),
    "sigmoid": Wanted(tirx.sigmoid, sigmoid, 4 * ULP, 3e-39),  # exp(-x) ends before 1 / exp(-x)
}


def kernel_of(op: Callable[[Any], Any], count: int, dtype: str = "float32") -> Any:
    x = te.placeholder((count,), dtype, "x")
    return te.create_prim_func([x, te.compute((count,), lambda i: op(x[i]), "out")])


def results(name: str, x: npt.NDArray[Any], target: Any) -> npt.NDArray[np.float32]:
    kernel = in_vectors(kernel_of(WANTED[name].op, len(x)))
    library = tvm.compile(tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")}), target)
    out = tvm.runtime.tensor(np.full(len(x), 7, np.float32))
    library["main"](tvm.runtime.tensor(x), out)
    return np.asarray(out.numpy())


def arguments(seed: int) -> npt.NDArray[np.float32]:
    """Numbers of every exponent, numbers around 0, and where functions end."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    near = rng.normal(0, 3, 20_000).astype(np.float32)
    ends = rng.uniform(-105, 90, 20_000).astype(np.float32)
    few = np.array([0, -0.0, 88.72283, 88.72284, -87.33655, -103.97, 3.83, 7.9], np.float32)
    return np.concatenate([bits[~np.isnan(bits)], near, ends, few])


def assert_near(name: str, x: npt.NDArray[Any], found: npt.NDArray[Any]) -> None:
    known = WANTED[name]
    with np.errstate(over="ignore"):
        wanted = np.array([known.truth(float(v)) for v in x])
        held = wanted.astype(np.float32)
    infinite = np.isinf(held)
    assert np.array_equal(found[infinite], held[infinite])
    apart = np.abs(found[~infinite].astype(np.float64) - wanted[~infinite])
    assert (apart <= known.relative * np.abs(wanted[~infinite]) + known.absolute).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WANTED)
def test_results_are_near_the_truth(name: str, target: str) -> None:
    x = arguments(len(name))
    assert_near(name, x, results(name, x, TARGETS[target]))


@pytest.mark.parametrize("name", WANTED)
def test_what_is_no_number_stays_so_and_infinity_has_its_limit(name: str) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf] * 8, np.float32)
    found = results(name, x, native())
    below = {"exp": 0.0, "erf": -1.0, "tanh": -1.0, "sigmoid": 0.0}[name]
    assert np.isnan(found.reshape(-1, 4)[:, :2]).all()
    assert (found.reshape(-1, 4)[:, 2] == (np.inf if name == "exp" else 1)).all()
    assert (found.reshape(-1, 4)[:, 3] == below).all()


@pytest.mark.parametrize(
    ("name", "constant", "value"),
    [
        ("exp", "EXP", (*vector_math.EXP[:-1], 1.5e-3)),
        ("exp", "LOW", 0.0),
        ("exp", "MOST", 88.0),
        ("erf", "ERF", (*vector_math.ERF[:2], 3.0)),
        ("tanh", "TANH", ((1.0001, *vector_math.TANH[0][1:]), *vector_math.TANH[1:])),
    ],
)
def test_a_fault_is_found(
    name: str, constant: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_math, constant, value)
    if constant == name.upper() and name != "exp":
        forms = {**vector_math.FORMS, name: vector_math.fraction(value)}
        monkeypatch.setattr(vector_math, "FORMS", forms)
    x = arguments(1)
    with pytest.raises(AssertionError):
        assert_near(name, x, results(name, x, native()))


def test_functions_of_other_types_stay() -> None:
    kernel = kernel_of(tirx.exp, 8, "float64")
    assert in_vectors(kernel).script() == kernel.script()
    assert "T.exp" not in in_vectors(kernel_of(tirx.exp, 8)).script()
