"""Options of a ``PassContext``, beside those that a pass is constructed with."""

from importlib import import_module
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import relax

from tests.passes import nets
from tvm_serenity.errors import InputError
from tvm_serenity.passes import SerenityOptions, SerenityPlanMemory, SerenitySchedule
from tvm_serenity.relax.in_force import Stated, stated
from tvm_serenity.relax.lower import lowered
from tvm_serenity.runtime.vm import run
from tvm_serenity.schedule import Options
from tvm_serenity.validation.network_inputs import random_inputs


def context(**options: Any) -> tvm.transform.PassContext:
    return tvm.transform.PassContext(instruments=[SerenityOptions(**options)])


def same(left: tvm.IRModule, right: tvm.IRModule) -> bool:
    return bool(tvm_ffi.structural_equal(left, right))


def test_contexts_nest_and_end() -> None:
    assert stated() == Stated()
    with context(time_limit_s=1.0):
        with context(method="given"):
            assert stated() == Stated(method="given")
        assert stated() == Stated(time_limit_s=1.0)
        with pytest.raises(ZeroDivisionError), context(method="dfs"):
            raise ZeroDivisionError
        assert stated() == Stated(time_limit_s=1.0)
    assert stated() == Stated()


def test_a_pass_takes_what_the_context_states() -> None:
    module = lowered(nets.build("branches"))
    best = SerenitySchedule()(module)
    assert not same(best, SerenitySchedule("given")(module))
    with context(method="given"):
        assert same(SerenitySchedule()(module), SerenitySchedule("given")(module))
        assert same(SerenitySchedule("auto")(module), best)  # its own wins
    with context(objective="traffic", on_chip_bytes=4096):
        there = SerenitySchedule()(module)
        assert same(SerenitySchedule(objective="peak")(module), best)
    assert same(there, SerenitySchedule(objective="traffic", on_chip_bytes=4096)(module))


def test_the_pipeline_takes_what_the_context_states() -> None:
    module = nets.build("branches")
    storages = []
    for method in ("auto", "given"):
        with context(method=method):
            made = tvm.compile(module, "llvm", relax_pipeline=relax.get_pipeline("serenity"))
        storages.append(run(made, random_inputs(module)).storages[0])
    assert storages[0] < storages[1]


def test_a_time_limit_holds_for_searches_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_serenity.search.deadline import seconds_left

    ordering: Any = import_module("tvm_serenity.relax.schedule")
    plan_memory: Any = import_module("tvm_serenity.relax.plan_memory")
    seen = []

    def watched(function: object) -> object:
        def call(*arguments: object) -> object:
            seen.append(seconds_left())
            return function(*arguments)  # type: ignore[operator]

        return call

    monkeypatch.setattr(ordering, "schedule", watched(ordering.schedule))
    monkeypatch.setattr(plan_memory, "plan", watched(plan_memory.plan))
    module = nets.build("branches")
    with context(time_limit_s=5.0):
        SerenityPlanMemory()(SerenitySchedule()(module))
        assert len(seen) == 2
        assert all(4 < left <= 5 for left in seen)
        SerenitySchedule(options=Options(time_limit_s=1.0))(module)
    assert seen[-1] > 5  # its own option is the search's


@pytest.mark.parametrize(
    "options",
    [{"objective": "energy"}, {"objective": "traffic"}, {"on_chip_bytes": 1}, {"time_limit_s": -1}],
)
def test_what_is_no_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        SerenityOptions(**options)
