"""The firmware project of a row program: as any other, with the walker as ``model.c``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvm_serenity.firmware.emit import sources
from tvm_serenity.firmware.emit.c import join, symbol
from tvm_serenity.firmware.emit.project import Files, Layout, project
from tvm_serenity.firmware.rows import model
from tvm_serenity.firmware.rows.program import RowProgram
from tvm_serenity.firmware.rows.table import tables


def row_project(rows: RowProgram, layout: Layout) -> Files:
    """Return the files of a project by name; ``metadata.json`` lists every row that is made."""
    files = project(rows.program, layout_of(rows, layout))
    files["model.h"] = model.header(rows).encode()
    files["model.c"] = model.source(rows).encode()
    if rows.streamed:
        files["main.c"] = _example(rows).encode()
        files["harness.c"] = _harness(rows).encode()
    return files


def layout_of(rows: RowProgram, layout: Layout) -> Layout:
    """Return ``layout`` with what ``metadata.json`` says of a row program."""
    about = {
        **(layout.metadata or {}),
        "steps": steps(rows),
        "inputs": list(rows.banded.network.inputs),
        "rows": {
            "bands": list(rows.banded.heights),
            "streamed": rows.streamed,
            "calls": len(rows.sequence),
            "table_bytes": tables(rows).size_bytes,
        },
    }
    return replace(layout, metadata=about)


def made_rows(rows: RowProgram) -> list[tuple[int, int]]:
    """Return feature and row of everything that is traced, in order.

    Sums over rows are not: no unsplit kernel stores them. What is made whole counts as row 0.
    """
    network, found = rows.banded.network, []
    for layer, band in rows.sequence:
        if layer < 0:
            feature = network.inputs[0]
            together, height = rows.banded.heights[feature], network.rows(feature)
        else:
            described = network.layers[layer]
            if described.sums:
                continue
            feature = described.outputs[0]
            together, height = rows.calls_of(described)
        for y in range(band * together, min(height, (band + 1) * together)):
            found.append((feature, y))
    return found


def steps(rows: RowProgram) -> list[dict[str, Any]]:
    """Return ``metadata.json``'s steps: one for each row that is traced."""
    return [{"kernel": "row", "writes": [feature], "row": row} for feature, row in made_rows(rows)]


def reference_rows(
    rows: RowProgram, arrays: Mapping[int, Any], inputs: Sequence[Any]
) -> dict[str, Any]:
    """Return the rows a run must write, as ``step<i>``, cut out of whole tensors.

    ``arrays`` are the tensors of the network's features, made by unsplit kernels.
    """
    network = rows.banded.network
    whole = {**dict(zip(network.inputs, inputs, strict=True)), **arrays}
    found: dict[str, Any] = {}
    for index, (feature, row) in enumerate(made_rows(rows)):
        array = np.ascontiguousarray(whole[feature])
        producer = network.producer.get(feature)
        if producer is not None and not network.layers[producer].splits:
            found[f"step{index}"] = array
        else:
            found[f"step{index}"] = array.reshape(network.rows(feature), -1)[row]
    return found


def _example(rows: RowProgram) -> str:
    """``main.c``: one run on rows of zeros."""
    program = rows.program
    feature = rows.banded.network.features[rows.banded.network.inputs[0]]
    return join(
        [
            f"/* {program.name}: an example. Feed rows as they arrive, then read the outputs. */\n"
            '#include "model.h"\n\n#include <stddef.h>\n\n#include "port.h"\n',
            f"static uint32_t row[{-(-feature.row_bytes // 4)}];\n",
            "int main(void)\n{\n    int32_t left;\n    do {\n"
            f"        left = {symbol(program, 'feed_row')}((const void *)row);\n"
            "    } while (left > 0);\n"
            f'    port_puts("{program.name} has run");\n    return 0;\n}}\n',
        ]
    )


def _harness(rows: RowProgram) -> str:
    """``harness.c`` with the rows of the input read from its file one by one."""
    program = rows.program
    text = sources.harness(program, False)
    feature = rows.banded.network.features[rows.banded.network.inputs[0]]
    head, _, _ = text.partition("int main(void)\n{\n")
    size = feature.row_bytes
    outputs = []
    for i, t in enumerate(program.outputs):
        at = f"{symbol(program, f'output_{program.tensors[t].name}')}()"
        outputs += [
            f'    if (port_create("output{i}.bin") != 0 ||',
            f"        port_append({at}, {program.tensors[t].size_bytes}) != 0) {{",
            "        return 3;",
            "    }",
        ]
    others = []
    for i, t in enumerate(program.inputs, start=1):
        at = f"{symbol(program, f'input_{program.tensors[t].name}')}()"
        bytes_ = program.tensors[t].size_bytes
        others += [
            f'    if (port_read("input{i}.bin", {at}, {bytes_}) != {bytes_}) {{',
            "        return 2;",
            "    }",
        ]
    lines = [
        f"static uint32_t row[{-(-size // 4)}];\n\nint main(void)\n{{",
        "    uint64_t ticks = 0;",
        "    int32_t left = 0;",
        *others,
        "#if defined(SERENITY_TRACE)",
        '    if (port_create("trace.bin") != 0) {',
        "        return 3;",
        "    }",
        "#endif",
        "    port_clock_start();",
        f"    for (uint32_t y = 0; y < {feature.height}u; ++y) {{",
        f'        if (port_read_at("input0.bin", y * {size}u, row, {size}) != {size}) {{',
        '            port_puts("input0.bin is missing or too short");',
        "            return 2;",
        "        }",
        "        const uint64_t before = port_clock();",
        f"        left = {symbol(program, 'feed_row')}((const void *)row);",
        "        ticks += port_clock() - before;",
        "    }",
        '    port_report("ticks", ticks);',
        '    port_report("stack", port_stack_used());',
        '    port_report("status", (uint64_t)(uint32_t)left);',
        *outputs,
        "    return left == 0 ? 0 : 1;\n}",
    ]
    return head + "\n".join(lines) + "\n"
