"""ExecuTorch programs as graphs: small ones by hand, ExecuTorch's own against its reader."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flatbuffers")

from tests.cases import sampled
from tests.frontends.programs import (
    DELEGATE,
    FREE,
    JUMP,
    KERNEL,
    MOVE,
    Held,
    program,
)
from tests.frontends.test_damage import attack
from tvm_serenity.errors import InputError, SerenityError, UnsupportedError
from tvm_serenity.frontends import load
from tvm_serenity.frontends.pte_file import PteFile
from tvm_serenity.graph import Role, is_order, text
from tvm_serenity.memory import peak_bytes

Calls = tuple[tuple[int, int, tuple[int, ...]], ...]


def opened(folder: Path, data: bytes) -> PteFile:
    path = folder / "made.pte"
    path.write_bytes(data)
    found = load(path)
    assert isinstance(found, PteFile)
    return found


def test_a_program_is_its_instructions_and_what_they_take(tmp_path: Path) -> None:
    found = opened(tmp_path, program())
    ops = [(op.name, op.kind) for op in found.graph.ops]
    assert ops == [("relu_0", "aten::relu.out"), ("add_1", "aten::add.out"), ("add_2", ops[1][1])]
    names = [[found.graph.tensors[t].name for t in op.inputs] for op in found.graph.ops]
    assert names == [["input_0"], ["input_0", "weight"], ["relu_0", "add_1"]]
    assert found.graph.tensors[2].role is Role.CONSTANT
    assert found.allocated.memories == {1: 48}
    places = {place.tensor: place.offset for place in found.allocated.places}
    assert places == {"input_0": 0, "relu_0": 16, "add_1": 32, "add_2": 0}
    assert peak_bytes(found.graph) == 48
    assert text.dump(found.graph)


def test_what_is_not_made_shows_the_bytes_written_last_where_it_lies(tmp_path: Path) -> None:
    values: tuple[Held, ...] = (
        Held((8,), (1, 0)),
        Held((8,), (1, 32)),
        Held((4,), (1, 48)),  # the upper half of value 1: a view that was left out
        Held((4,), (1, 0)),
    )
    calls: Calls = ((KERNEL, 0, (0, 1, 1)), (KERNEL, 0, (2, 3, 3)))
    found = opened(tmp_path, program(values, calls, outputs=(3,), memories=(0, 64)))
    assert [op.inputs for op in found.graph.ops] == [(0,), (1,)]
    # The same bytes, after two tensors were written to their halves: both are read.
    values = (
        Held((8,), (1, 0)),
        Held((2,), (1, 32)),
        Held((2,), (1, 40)),
        Held((4,), (1, 32)),
        Held((4,), (1, 0)),
    )
    calls = ((KERNEL, 0, (0, 1, 1)), (KERNEL, 0, (0, 2, 2)), (KERNEL, 0, (3, 4, 4)))
    found = opened(tmp_path, program(values, calls, memories=(0, 64)))
    assert found.graph.ops[2].inputs == (1, 2)


def test_a_buffer_that_is_written_keeps_its_readers_in_place(tmp_path: Path) -> None:
    """Two read value 1, ``add_`` writes to it, one reads it after that."""
    values = (Held(place=(1, 0)), *(Held(place=(1, 16 * i)) for i in range(1, 6)))
    calls = (
        (KERNEL, 0, (0, 1, 1)),
        (KERNEL, 0, (1, 2, 2)),
        (KERNEL, 0, (1, 3, 3)),
        (KERNEL, 3, (1, 0, 1)),
        (KERNEL, 0, (1, 4, 4)),
    )
    kernels = (("aten::relu", "out"), ("", ""), ("", ""), ("aten::add_", "Tensor"))
    data = program(values, calls, outputs=(2, 3, 4), memories=(0, 96), kernels=kernels)
    graph = opened(tmp_path, data).graph
    assert is_order(graph, (0, 2, 1, 3, 4))
    for wrong in [(0, 1, 3, 2, 4), (0, 1, 2, 4, 3), (0, 3, 1, 2, 4)]:
        assert not is_order(graph, wrong)
    # Without the first call nothing makes it: a buffer that lives from run to run.
    data = program(values, calls[1:], outputs=(2, 3, 4), memories=(0, 96), kernels=kernels)
    state = opened(tmp_path, data).graph
    assert [t.role for t in state.tensors if t.size_bytes][1] is Role.STATE
    assert state.state_bytes == 16


def test_a_backend_makes_what_nothing_made(tmp_path: Path) -> None:
    values = (Held(), Held(place=(1, 0)), Held(place=(1, 16)))
    calls = ((DELEGATE, 0, (0, 1, 2)),)
    data = program(values, calls, outputs=(2,), memories=(0, 32), delegates=("Npu\x1b[31m",))
    graph = opened(tmp_path, data).graph
    (op,) = graph.ops
    assert (op.kind, op.inputs, op.outputs) == (r"Npu\x1b[31m", (0,), (1, 2))
    assert graph.tensors[0].role is Role.EXTERNAL
    assert peak_bytes(graph) == 32


def test_the_method_is_forward_or_the_first(tmp_path: Path) -> None:
    found = opened(tmp_path, program(methods=("encode", "forward")))
    assert found.allocated.method == "forward"
    assert opened(tmp_path, program(methods=("encode", "decode"))).allocated.method == "encode"


REFUSED: dict[str, tuple[bytes, type[SerenityError], str]] = {
    "empty": (program(methods=()), InputError, "the program has no method"),
    "jump": (program(calls=((JUMP, 0, (0,)),)), UnsupportedError, "instruction 0 jumps: only"),
    "move": (program(calls=((MOVE, 0, (0,)),)), UnsupportedError, "instruction 0 moves a value"),
    "free": (program(calls=((FREE, 0, (0,)),)), UnsupportedError, "instruction 0 frees"),
    "unknown": (program(calls=((77, 0, (0,)),)), UnsupportedError, "instruction 0 is unknown"),
    "kernel": (
        program(calls=((KERNEL, 5, (0,)),)),
        InputError,
        "calls function 5, which does not exist",
    ),
    "value": (program(calls=((KERNEL, 0, (9,)),)), InputError, "value 9 does not exist"),
    "output": (program(outputs=(77,)), InputError, "value 77 does not exist"),
    "memory": (
        program(memories=(0, 47)),
        InputError,
        "ends at byte 48 of memory 1, which has only 47",
    ),
    "none": (program(memories=(0,)), InputError, "of memory 1, which has only 0 bytes"),
    "negative": (program(memories=(0, -1)), InputError, "a negative size"),
    "size": (
        program((Held(dynamism=2, name="mask"),), (), outputs=(0,)),
        UnsupportedError,
        "tensor 'mask': its size is known only at run time",
    ),
    "type": (program((Held(scalar=99),), (), (), ()), UnsupportedError, "unknown scalar type 99"),
    "huge": (program((Held((2**31 - 1,) * 3),), (), (), ()), UnsupportedError, "more than"),
    "zero": (program((Held(place=(0, 0)),), (), (), ()), InputError, "memory 0"),
    "unmade": (
        program((Held(), Held()), ((KERNEL, 0, (1, 0, 0)),), (), (0,)),
        InputError,
        "value 1 is read, but no instruction computes it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    data, kind, said = REFUSED[name]
    with pytest.raises(kind) as refused:
        opened(tmp_path, data)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / 'made.pte'}: ")


def test_orders_and_sizes_are_made_at_export(tmp_path: Path) -> None:
    found = opened(tmp_path, program())
    with pytest.raises(UnsupportedError, match="order_pass"):
        found.reordered(range(3))
    with pytest.raises(UnsupportedError, match="cannot be compiled"):
        found.check_operators()
    with pytest.raises(InputError, match="no named dimensions"):
        load(found.path, {"batch": 2})


def test_damaged_programs(tmp_path: Path) -> None:
    attack(tmp_path / "made.pte", program())


def test_the_command_says_what_is_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tvm_serenity.cli import app
    from tvm_serenity.cli.commands import register

    register()
    path = opened(tmp_path, program()).path
    app(["schedule", str(path), "--check"], standalone_mode=False)
    assert "as planned   48 bytes in memory 1, for forward" in capsys.readouterr().out
    with pytest.raises(UnsupportedError, match="at export"):
        app(["schedule", str(path), "-o", str(tmp_path / "o.pte")], standalone_mode=False)
    assert not (tmp_path / "o.pte").exists()


@pytest.mark.filterwarnings("ignore")  # of PyTorch and ExecuTorch, about themselves
class TestExported:
    """Programs that ExecuTorch made, in its own plan and in one that is known to be optimal."""

    @pytest.mark.parametrize("name", sampled(["wired", "branches", "parts", "counter"], 2))
    def test_bytes_and_places_are_those_of_its_own_reader(self, tmp_path: Path, name: str) -> None:
        pytest.importorskip("executorch")
        from executorch.exir._serialize._program import deserialize_pte_binary

        from tests.executorch.nets import exported, sizes
        from tests.executorch.test_executorch import CASES
        from tvm_serenity.executorch import SerenityPlanning, order_pass

        make, inputs = CASES[name]
        theirs = exported(make(), inputs)
        found = opened(tmp_path, theirs.buffer)
        read: Any = deserialize_pte_binary(theirs.buffer)
        plan = getattr(read, "program", read).execution_plan[0]
        assert list(found.allocated.memories.values()) == sizes(theirs)
        assert len(found.graph.ops) == len(plan.chains[0].instructions)
        held = [getattr(value.val, "allocation_info", None) for value in plan.values]
        places = {(info.memory_id, info.memory_offset_low) for info in held if info is not None}
        assert {(p.memory, p.offset) for p in found.allocated.places} <= places

        schedules: list[Any] = []
        planning = SerenityPlanning()
        ours = exported(
            make(),
            inputs,
            passes=lambda edge: [order_pass(edge, found=schedules)],
            planning=planning,
        )
        best = opened(tmp_path, ours.buffer).graph
        # The plan is proved least for its order; alignment to 16 bytes is all that may be between.
        least = peak_bytes(best) + best.state_bytes
        assert 0 <= sum(sizes(ours)) - least < 16 * len(best.tensors)
        if name in ("branches", "wired"):
            assert sum(sizes(ours)) == least == schedules[0].peak_bytes
            assert peak_bytes(found.graph) > peak_bytes(best)

    def test_a_backend_is_one_operator(self, tmp_path: Path) -> None:
        pytest.importorskip("executorch")
        import torch
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        from tests.executorch.nets import Branches

        inputs = (torch.ones(1, 3, 16, 16),)
        edge = to_edge_transform_and_lower(
            torch.export.export(Branches().eval(), inputs), partitioner=[XnnpackPartitioner()]
        )
        found = opened(tmp_path, edge.to_executorch().buffer)
        assert "XnnpackBackend" in {op.kind for op in found.graph.ops}
        assert peak_bytes(found.graph) <= sum(found.allocated.memories.values())
