"""SerenityRewrite on Relay: what it computes, and that it is kept only where it helps."""

import pytest

relay = pytest.importorskip("tvm.relay", reason="needs a TVM with Relay: make relay-test")

import numpy as np  # noqa: E402
import tvm  # noqa: E402

from tests.relay.nets import Layers, computed, context, inputs, joined, wide  # noqa: E402
from tvm_serenity.relay.rewrite import force, rewrite_module  # noqa: E402
from tvm_serenity.rewrite import RewriteOptions  # noqa: E402

CASES = [("NCHW", True), ("NHWC", True), ("NHWC", False)]


@pytest.mark.parametrize(("layout", "quantised"), CASES)
def test_everywhere(layout: str, quantised: bool) -> None:
    """Every rule wherever it matches: several readers of one concat, integers to the bit."""
    mod = joined(layout, quantised)
    made, done = force(mod, "channelwise,kernelwise,residual")
    rules = [m.rule for m in done]
    assert rules.count("kernelwise") == 2
    assert rules.count("channelwise") == 4
    names = str(made["main"])
    assert "concatenate" not in names
    values = inputs(mod)
    for a, b in zip(computed(mod, values), computed(made, values), strict=True):
        if quantised:
            assert a.std() > 5
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-4)


def test_piece_by_piece_is_exact() -> None:
    to = Layers("NCHW", False)
    x = to.input(4, 6)
    mod = to.module(x, to.conv(to.concat([to.conv(x, 5, 1), x]), 9, 3, depth=9))
    made, done = force(mod, "kernelwise")
    assert len(done) == 1
    values = inputs(mod)
    for a, b in zip(computed(mod, values), computed(made, values), strict=True):
        np.testing.assert_array_equal(a, b)


def test_kept_where_the_peak_falls() -> None:
    with context():
        found = rewrite_module(wide(), target="llvm")
    assert [m.rule for m in found.applied] == ["channelwise"]
    assert found.after_bytes < found.before_bytes


def test_left_alone_where_it_does_not() -> None:
    """Two partial sums of 32 channels need more than a concat of 8."""
    to = Layers("NCHW", False)
    x = to.input(4, 6)
    mod = to.module(x, to.conv(to.concat([to.conv(x, 4), to.conv(x, 4)]), 32))
    assert force(mod, "channelwise")[1]
    with context():
        found = rewrite_module(mod, target="llvm")
    assert not found.applied
    assert found.after_bytes == found.before_bytes
    assert tvm.ir.structural_equal(found.module, mod)


def test_rules_relay_cannot_write_are_not_tried() -> None:
    mod = joined("NCHW", False)
    assert not rewrite_module(mod, RewriteOptions("fold,no-copies,in-place")).applied
