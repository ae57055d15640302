"""Puts the table of operators, made from their records, into the page that asks for it."""

from typing import Any

MARK = "<!-- operators -->"
_SHAPE = (1, 4, 4, 4)
_MOST_INPUTS = 24


def table() -> str:
    """Return what is known of every TFLite operator that has a record, as a Markdown table."""
    from tvm_serenity.operators import MODULES, OPERATORS, MemoryUse, Operator

    memory = {
        MemoryUse.ELEMENTWISE: "in place",
        MemoryUse.COPY: "a view",
        MemoryUse.CONCAT: "a concat",
        MemoryUse.PART: "a part",
        MemoryUse.TURNED: "turned",
    }

    def row(kind: str, record: Operator) -> str:
        specified = "yes" if record.reference else ""
        rows = "summed" if record.sums_rows else "yes" if record.by_rows else ""
        cells = (
            kind,
            "refused"
            if record.refused
            else "own form"
            if record.plain or record.exact
            else "importer",
            integers(kind, record),
            specified,
            rows,
            record.library,
            memory.get(record.memory, ""),
        )
        return f"| {' | '.join(cells)} |"

    rows = [row(k, r) for k, r in sorted(OPERATORS.items()) if r.exact or k.isupper()]
    head = (
        "| operator | floats | quantised | specified in numpy | by rows | fast kernel | memory |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return f"{head}{chr(10).join(rows)}\n\n{len(rows)} kinds in {len(MODULES)} files.\n"


def integers(kind: str, record: Any) -> str:
    """Return which stored types it is computed on, or how else quantised ones are treated."""
    if record.exact:
        return "of TFLM's types"
    if record.read is not None:
        return " ".join(t for t in ("int8", "uint8", "int16") if _reads(kind, record, t))
    if record.float_only:
        return "refused: LiteRT has none"
    return "as they are stored" if record.moves else "to floats" if record.stored else ""


def _reads(kind: str, record: Any, dtype: str) -> bool:
    """Whether ``read`` takes tensors of a type, beside others of that type or of int8.

    Whatever else it refuses a made-up operator for is not the type.
    """
    from tvm_serenity.errors import UnsupportedError

    for count in range(1, _MOST_INPUTS + 1):
        for other in (dtype, "int8"):
            try:
                record.read(_scene(kind, [dtype, *[other] * (count - 1)]))
            except UnsupportedError as error:
                if str(error).startswith(f"no {kind} ") and dtype in str(error):
                    continue
            except (ValueError, IndexError):  # more inputs
                continue
            return True
    return False


def _scene(kind: str, dtypes: list[str]) -> Any:
    """An operator of inputs of some types, with options that are left out."""
    import numpy as np

    from tvm_serenity.frontends._flatbuffer import empty_table
    from tvm_serenity.operators.scene import Scene, SceneTensor
    from tvm_serenity.quantize.params import Affine

    def tensor(dtype: str) -> SceneTensor:
        params = Affine((0.5,), (0,), dtype, 0)
        return SceneTensor(_SHAPE, dtype, params, np.ones(_SHAPE, dtype))

    return Scene(kind, [tensor(t) for t in dtypes], [tensor(dtypes[0])], empty_table(), False)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the table in place of its mark."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown
