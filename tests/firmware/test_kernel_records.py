"""Every kernel of the library has a record that is whole: prices, drawn tests, an overlap rule."""

import ast
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import scaled
from tests.firmware.drawn_kernels import CORES, DrawnKernel, kernels
from tests.firmware.emulated import machine, said
from tests.firmware.projects import needs_board, needs_riscv
from tvm_serenity import firmware
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.kernels import all_kernels
from tvm_serenity.firmware.kernels import prices as priced
from tvm_serenity.firmware.kernels.candidates import candidates
from tvm_serenity.firmware.kernels.prices import prices_of
from tvm_serenity.firmware.passage import Passage, distance_bytes, starts_together
from tvm_serenity.firmware.program import Program

FIRMWARE = Path(firmware.__file__).parent
SEEDS = range(5000, 5012)
Lying = tuple[DrawnKernel, int, int]
"""A kernel, the operand that its result lies below, and how many bytes."""
MAIN = """
#include <string.h>
#include "net_kernels.h"
#include "port.h"
static uint8_t arena[ROOM] __attribute__((aligned(16)));
static uint8_t workspace[ROOM] __attribute__((aligned(16)));
static const uint32_t one = 1;
static void begin(uint32_t far, const void *read, uint32_t size)
{
    (void)one;
    memset(workspace, 0xA5, sizeof workspace);
    memcpy(arena + far, read, size);
}
static void end(uint64_t number, const void *want, uint32_t size)
{
    if (memcmp(arena, want, size) != 0) port_report("bad", number);
}
"""


def test_every_folder_has_a_record() -> None:
    folders = {path.parent.name for path in FIRMWARE.glob("kernels/*/kernel.h")}
    assert {kernel.name for kernel in all_kernels()} == folders
    assert len(folders) > 15


@pytest.mark.parametrize("core", CORES)
def test_every_case_has_a_price_and_code(core: str) -> None:
    known = prices_of(core)
    assert known is not None
    for kernel in all_kernels():
        table = priced.table_of(kernel.name)
        assert set(table) == {c for c, has in CORES.items() if has.isa in kernel.isa}, kernel.name
        if CORES[core].isa in kernel.isa:
            assert set(table[core]) == set(kernel.cases), kernel.name
            for case, row in table[core].items():
                assert row["code"], (kernel.name, case)
                assert min(row["prices"]) >= 0, (kernel.name, case)
                assert max(row["prices"]) > 0, (kernel.name, case)


@pytest.mark.parametrize("core", CORES)
def test_every_kernel_is_drawn_and_has_an_overlap_rule(core: str) -> None:
    seen: dict[str, set[str]] = {}
    for drawn in kernels(core, SEEDS):
        kernel, case = drawn.row
        assert case in drawn.made.form.kernel.cases, (kernel, case)
        seen.setdefault(kernel, set()).add(case)
        assert len(drawn.made.passages) == len(set(drawn.operand)), kernel
        known = prices_of(core)
        assert known is not None
        counts = drawn.made.form.kernel.counts(drawn.layer, drawn.made.form.options)
        assert len(counts) == len(known.rows[drawn.row]), (kernel, case)
    expected = {k.name for k in all_kernels() if CORES[core].isa in k.isa}
    assert set(seen) == expected


def test_a_kernel_without_a_price_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = next(kernels("cortex-m4", SEEDS))
    known = prices_of("cortex-m4")
    assert known is not None
    rows = {row: prices for row, prices in known.rows.items() if row != drawn.row}
    monkeypatch.setattr(
        "tvm_serenity.firmware.kernels.candidates.prices_for",
        lambda _core: replace(known, rows=rows),
    )
    with pytest.raises(UnsupportedError, match=r"has no price for .* on cortex-m4"):
        candidates("k", drawn.layer, CORES["cortex-m4"])


def overlaps(found: list[DrawnKernel], far_of: Callable[[Passage], int | None]) -> list[Lying]:
    """Each kernel with an operand, or row, and how far its result lies below: just not over it."""
    lying: list[Lying] = []
    for drawn in found:
        for index, operand in enumerate(drawn.operand):
            passage = drawn.made.passages[operand]
            far = None if passage is None else far_of(passage)
            lying.append((drawn, index, drawn.expected.nbytes if far is None else far))
    return lying


def allowed(passage: Passage) -> int | None:
    """How far below an operand the result may begin, as the planner is told; None: apart."""
    return 0 if starts_together(passage) else distance_bytes(passage)


def wrong_on_board(lying: list[Lying], core: str, folder: Path) -> list[str]:
    """The names of the kernels whose result is wrong where it lies over what they read."""
    texts = [replace(d.made.kernel, name=f"k{i}") for i, (d, _, _) in enumerate(lying)]
    held: dict[bytes, str] = {}
    lines = [_call(f"k{i}", one, held) for i, one in enumerate(lying)]
    room = max(far + d.given[at].nbytes + d.expected.nbytes for d, at, far in lying)
    room = max(room, *(d.made.workspace_bytes for d, _, _ in lying)) + 16
    lying_over = tuple(replace(k, restrict=False) for k in texts)
    program = Program("net", lying_over, (), (), (), (), (), (), {})
    arrays = "\n".join(
        f"static const uint8_t {name}[] __attribute__((aligned(16))) = "
        f"{{{', '.join(map(str, data))}}};"
        for data, name in held.items()
    )
    body = "int main(void)\n{\n" + "\n".join(lines) + '\n    port_puts("done");\n    return 0;\n}\n'
    text = said(machine(core), program, f"#define ROOM {room}\n" + MAIN + arrays + body, folder)
    assert "done" in text, text[-400:]
    return [lying[int(n)][0].made.form.text for n in re.findall(r"bad (\d+)", text)]


def _call(name: str, one: Lying, held: dict[bytes, str]) -> str:
    """A call whose operand lies some bytes above its result."""
    drawn, at, far = one

    def array(values: Any) -> str:
        data = np.ascontiguousarray(values).tobytes()
        return held.setdefault(data, f"a{len(held)}")

    read = [array(a) for a in drawn.given]
    given = [f"(const void *){name}" for name in read]
    given[at] = f"(const void *)(arena + {far})"
    given += [f"(const void *){array(a)}" for a in drawn.made.constants]
    names = [param.name for param in drawn.made.kernel.params[len(given) :]]
    other = {"out": "arena", "workspace": "workspace", "n": "&one"}
    given += [f"(void *){other[name]}" for name in names]
    want, size = array(drawn.expected), drawn.expected.nbytes
    return (
        f"    begin({far}, {read[at]}, {drawn.given[at].nbytes}); "
        f"net_{name}({', '.join(given)}); end({name[1:]}, {want}, {size});"
    )


@needs_board
@needs_riscv
@pytest.mark.parametrize("core", CORES)
def test_results_over_what_is_read_are_right(core: str, tmp_path: Path) -> None:
    lying = overlaps(list(kernels(core, range(5000, 5000 + scaled(4, 60)))), allowed)
    names = {drawn.made.form.kernel.name for drawn, _, _ in lying}
    assert names == {k.name for k in all_kernels() if CORES[core].isa in k.isa}
    over = {d.made.form.kernel.name for d, _, far in lying if far < d.expected.nbytes}
    assert over == names - {"dense_mve", "dense_dsp"}, "all but those of one window"
    assert wrong_on_board(lying, core, tmp_path) == []


@needs_board
@needs_riscv
@pytest.mark.parametrize(("core", "least"), [("cortex-m4", 4), ("cortex-m55", 4), ("rv32imc", 3)])
def test_a_result_that_begins_too_near_is_noticed(core: str, least: int, tmp_path: Path) -> None:
    def near(passage: Passage) -> int | None:
        far = allowed(passage)
        return None if far is None else far // 2

    lying = overlaps(list(kernels(core, range(5000, 5004))), near)
    assert len(set(wrong_on_board(lying, core, tmp_path))) >= least


PARTS = {"split", "rsplit", "replace", "partition", "rpartition", "endswith", "startswith"}
NAMED = re.compile(
    r"\b(form|kernel|support|include|header|file|rounding)s?(\.(name|path))?(\[.*\])?$"
)
IS_NAME = re.compile(r"\b(form|kernel|rounding)s?(\[.*\])?\.name$")


def told_from_names(source: str) -> list[str]:
    """The places of Python code that take the name of a kernel, a form or a file apart."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in PARTS and NAMED.search(ast.unparse(node.func.value)):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            word = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            if word and NAMED.search(ast.unparse(node.comparators[0])):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides = [node.left, *node.comparators]
            if any(isinstance(s, ast.Constant) for s in sides) and any(
                IS_NAME.search(ast.unparse(s)) for s in sides
            ):
                found.append(ast.unparse(node))
    return found


def test_nothing_is_told_from_the_name_of_a_kernel_or_a_file() -> None:
    models = FIRMWARE / "compile" / "model.py"  # which tells a network of the zoo from a file
    paths = set(FIRMWARE.rglob("*.py")) - {models}
    found = {p.name: told_from_names(p.read_text()) for p in paths}
    assert {name: told for name, told in found.items() if told} == {}


def test_no_folder_has_more_than_twenty_files() -> None:
    count = Counter(p.parent for p in FIRMWARE.rglob("*") if p.is_file() and p.suffix != ".pyc")
    assert len(count) > 20
    assert {str(folder): n for folder, n in count.items() if n > 20} == {}


@pytest.mark.parametrize(
    "code",
    [
        'form = form.replace("_once", "")',
        'LAST_FILES.get(kernel.support[-1].partition(":")[0])',
        'doubt * ("gathered" in one.form)',
        'BLOCKINGS[made.form.split(",")[0]]',
        'made.kernel.name.startswith("conv")',
        'not layer.rounding.name.endswith("_SMALL")',
        'one.form.kernel.name == "conv_mve"',
    ],
)
def test_what_is_told_from_a_name_is_noticed(code: str) -> None:
    assert len(told_from_names(code)) == 1
