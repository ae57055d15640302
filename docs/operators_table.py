"""Puts the tables of operators, made from their records, into the page that asks for them."""

from typing import Any

MARK = "<!-- operators -->"
TFLM_MARK = "<!-- operators of TFLM -->"
TFLM = """
    ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND
    BROADCAST_ARGS BROADCAST_TO CALL_ONCE CAST CEIL CIRCULAR_BUFFER CONCATENATION CONV_2D COS CUMSUM
    DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL
    EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GREATER
    GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOG
    LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM
    MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD PADV2 PRELU QUANTIZE READ_VARIABLE REDUCE_ALL REDUCE_MAX
    REDUCE_MIN RELU RELU6 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT
    SELECT_V2 SHAPE SIN SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE
    SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF SignalDelay SignalEnergy
    SignalFftAutoScale SignalFilterBank SignalFilterBankLog SignalFilterBankSpectralSubtraction
    SignalFilterBankSquareRoot SignalFramer SignalIrfft SignalOverlapAdd SignalPCAN SignalRfft
    SignalStacker SignalWindow TANH TFLM_DECODE TFLite_Detection_PostProcess TRANSPOSE
    TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK VAR_HANDLE WHILE ZEROS_LIKE ethos-u
"""
"""Operators that TFLM registers (``MicroMutableOpResolver``, as of its wheel of 2025), by
the names that files have for them."""
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
        specified = "yes" if record.integers.reference else ""
        rows = "summed" if record.rows.summed else "yes" if record.rows.needs else ""
        cells = (
            kind,
            _written_out(record)
            if record.written_out
            else "refused"
            if record.refused
            else "own form"
            if record.numbers.form or record.integers.exact
            else "importer",
            integers(kind, record),
            specified,
            rows,
            record.library,
            memory.get(record.storage.use, ""),
        )
        return f"| {' | '.join(cells)} |"

    rows = [row(k, r) for k, r in sorted(OPERATORS.items()) if r.integers.exact or k.isupper()]
    head = (
        "| operator | floats | quantised | specified in numpy | by rows | fast kernel | memory |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return f"{head}{chr(10).join(rows)}\n\n{len(rows)} kinds in {len(MODULES)} files.\n"


def beside_tflm() -> str:
    """Return which of TFLM's operators run here, on which types, as a Markdown table."""
    from tvm_serenity.operators import operator

    rows, lacking = [], list[str]()
    for kind in TFLM.split():
        record = operator(kind)
        why = "" if record.written_out else why_not(kind)
        cells = ("refused", why, "", "") if why else _runs(kind, record)
        rows.append(f"| {kind} | {' | '.join(cells)} |")
        lacking += [kind] if why else []
    head = "| TFLM's operator | plain numbers | quantised | by rows | fast kernel |"
    head = f"{head}\n|---|---|---|---|---|\n"
    ran = len(rows) - len(lacking)
    count = f"{ran} of {len(rows)} run; refused by name: {', '.join(lacking)}."
    return f"{head}{chr(10).join(rows)}\n\n{count}\n"


def why_not(kind: str) -> str:
    """Return why no operator of a kind is computed, or nothing."""
    from tvm_serenity.frontends._tflite_meaning import lacking
    from tvm_serenity.frontends._tflite_schema import BUILTIN_OPERATORS
    from tvm_serenity.operators import OPERATORS

    if kind not in BUILTIN_OPERATORS and kind not in OPERATORS:
        return "a custom operator: `--opaque`"
    return lacking(kind, [], [])


def _runs(kind: str, record: Any) -> tuple[str, str, str, str]:
    from tvm_serenity.frontends._importable import TFLITE_QUANTISED

    if record.written_out:
        said = _written_out(record)
        return said, said, "as what is written", ""
    stored = integers(kind, record)
    if not stored and kind in TFLITE_QUANTISED:
        stored = "to floats"
    floats = "" if record.integers.exact else "yes"
    rows = "summed" if record.rows.summed else "yes" if record.rows.needs else ""
    return floats, stored, rows, record.library


def _written_out(record: Any) -> str:
    return f"written out {record.written_out}"


def integers(kind: str, record: Any) -> str:
    """Return which stored types it is computed on, or how else quantised ones are treated."""
    if record.integers.exact:
        return "of TFLM's types"
    if record.integers.read is not None:
        return " ".join(t for t in ("int8", "uint8", "int16") if _reads(kind, record, t))
    if record.integers.float_only:
        return "refused: LiteRT has none"
    return (
        "as they are stored"
        if record.integers.moves
        else "to floats"
        if record.numbers.stored
        else ""
    )


def _reads(kind: str, record: Any, dtype: str) -> bool:
    """Whether ``read`` takes tensors of a type, beside others of that type or of int8.

    Whatever else it refuses a made-up operator for is not the type.
    """
    from tvm_serenity.errors import UnsupportedError

    for count in range(1, _MOST_INPUTS + 1):
        for other in (dtype, "int8"):
            try:
                record.integers.read(_scene(kind, [dtype, *[other] * (count - 1)]))
            except UnsupportedError as error:
                if f"does not support {kind} " in str(error) and dtype in str(error):
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
    """Return a page with the tables in place of their marks."""
    for mark, made in ((MARK, table), (TFLM_MARK, beside_tflm)):
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown
