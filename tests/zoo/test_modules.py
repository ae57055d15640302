"""Every network: a well formed module, the same each time, and alive."""

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import IRModule, relax

from tests.cases import sampled
from tests.llvm import TARGET
from tests.zoo.reading import bindings, constants
from tvm_serenity import zoo

SMALL = [
    "swiftnet?size=32",
    "swiftnet-cell-a",
    "swiftnet-cell-b",
    "swiftnet-cell-c",
    "darts-imagenet?cells=3&channels=8&size=64",
    "darts-cifar10?cells=4&channels=8",
    "darts-normal-cell?channels=8&size=10",
    "darts-normal-cell?channels=8&size=10&preprocess=0",
    "nasnet-imagenet?cells=1&channels=8&size=63",
    "nasnet-cifar?cells=1&channels=8&concat=all",
    "nasnet-cell?channels=8&kind=reduction",
    "amoebanet-imagenet?cells=1&channels=8&size=64",
    "amoebanet-cifar?cells=1&channels=8",
    "amoebanet-cell?channels=8&kind=normal",
    "randwire?n=12&channels=8",
    "randwire?n=12&channels=8&model=ba&stride=1",
    "randwire-cifar10?n=8&channels=8&model=er",
    "randwire-cifar100?n=8&channels=8",
    "liberis-lane",
    "mobilenet-v2?width=0.1&size=32&classes=10",
]

# Compiled too, they would take time and show nothing that their siblings do not.
TWINS = ("amoebanet-imagenet", "nasnet-cifar", "darts-cifar10", "randwire-cifar10")


def run(module: IRModule, layout: str) -> Any:
    """The output for inputs that are the same in both layouts."""
    rng = np.random.RandomState(1)
    arrays = []
    for param in module["main"].params:
        n, *rest = (int(d) for d in param.ty.shape)
        c, h, w = rest if layout == "NCHW" else (rest[2], *rest[:2])
        array = rng.standard_normal((n, c, h, w)).astype("float32")
        arrays.append(array if layout == "NCHW" else array.transpose(0, 2, 3, 1).copy())
    vm = relax.VirtualMachine(tvm.compile(module, TARGET), tvm.cpu())
    return vm["main"](*map(tvm.runtime.tensor, arrays)).numpy()


def test_the_small_ones_cover_every_name() -> None:
    assert {spec.partition("?")[0] for spec in SMALL} == set(zoo.NAMES)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_the_defaults_build_a_well_formed_module(name: str) -> None:
    module = zoo.build(name)
    relax.analysis.well_formed(module)
    assert [g.name_hint for g in module.get_global_vars()] == ["main"]
    names = [binding.var.name for binding in bindings(module)]
    assert len(set(names)) == len(names)
    assert names[-1] == "output"
    assert all(isinstance(binding.value, relax.Call) for binding in bindings(module))


@pytest.mark.parametrize("spec", sampled(SMALL, 5))
def test_the_same_spec_gives_the_same_module_and_weights(spec: str) -> None:
    first, second = zoo.build(spec), zoo.build(f"zoo:{spec}")
    tvm.ir.assert_structural_equal(first, second)
    for a, b in zip(constants(first), constants(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_seed_gives_other_weights() -> None:
    first, second = (constants(zoo.build(f"swiftnet-cell-a?seed={seed}")) for seed in (0, 1))
    assert all((a != b).any() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("spec", sampled((s for s in SMALL if not s.startswith(TWINS)), 2))
def test_it_computes_something(spec: str) -> None:
    output = run(zoo.build(spec), "NCHW")
    assert np.isfinite(output).all()
    assert 0.001 < output.std() < 10


@pytest.mark.parametrize(
    "spec",
    sampled(
        [
            "swiftnet-cell-a?pool=1",
            "darts-normal-cell?channels=8&size=10",
            "randwire-cifar10?n=6&channels=8",
            "amoebanet-cell?channels=8&kind=reduction",
        ],
        2,
    ),
)
def test_both_layouts_compute_the_same(spec: str) -> None:
    nchw, nhwc = (run(zoo.build(f"{spec}&layout={layout}"), layout) for layout in ("NCHW", "NHWC"))
    same_axes = nhwc.transpose(0, 3, 1, 2) if nhwc.ndim == 4 else nhwc
    np.testing.assert_allclose(nchw, same_axes, rtol=1e-4, atol=1e-4)
