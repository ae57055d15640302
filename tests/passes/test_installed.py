"""Which passes there are depends on the TVM that is installed."""

from importlib import import_module

import pytest
import tvm

import tvm_serenity
from tvm_serenity.errors import MissingPartError


@pytest.mark.parametrize("name", ["tvm_serenity.relay", "tvm_serenity.passes.relay"])
def test_relay_needs_another_tvm(name: str) -> None:
    with pytest.raises(MissingPartError, match=rf"TVM {tvm.__version__} is installed.*install_rel"):
        import_module(name)


def test_the_passes_are_relax_passes() -> None:
    from tvm_serenity.passes import relax

    assert tvm_serenity.SerenityRewrite is relax.SerenityRewrite
    assert tvm_serenity.SerenitySchedule is relax.SerenitySchedule
