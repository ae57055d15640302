"""``serenity rows --sliding``: what a step of a window that moves along a stream takes."""

from collections.abc import Mapping

from tvm_serenity.cli import show
from tvm_serenity.cli.models import source
from tvm_serenity.deadline import within
from tvm_serenity.errors import InputError
from tvm_serenity.rows.limits import Limits


def sliding_command(
    model: str,
    step: int,
    dims: list[str],
    *,
    time_limit: float | None,
    check: bool,
    json: bool,
    others: Mapping[str, object],
) -> None:
    """Find and print one step of ``step`` rows; ``others`` are options it does not go with."""
    for option, value in others.items():
        if value not in (None, False):
            raise InputError(f"{option} does not go with --sliding: a step has bands of one row")
    opened = source(model, dims)
    opened.check_operators()  # before TVM, whose import takes seconds
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows
    from tvm_serenity.relax.rows_reads import operations, row_reads
    from tvm_serenity.sliding import sliding_step, steady
    from tvm_serenity.sliding.check import check_windows
    from tvm_serenity.sliding.described import described_step

    rows = read_rows(prepared(opened.module(), Steps(layout="last")).plain, model)
    reads = row_reads(rows)
    show.warn_without_core()
    with within(time_limit), show.progress(f"a step of {model}") as report:
        limits = Limits.within(time_limit, report)
        found = sliding_step(steady(rows.network, step, reads), limits)
    if check:
        found.streaming.check()
        check_windows(found, reads)
    result = described_step(found, operations(rows))
    if json:
        show.print_json({"model": model, **result, "checked": check})
        return
    facts = {
        "step": f"{step} of {result['window']} rows; "
        f"the first window is full after {result['steps_to_fill']} steps",
        "work": f"{result['work']:.1%} of the operations of a whole window",
        "kept": f"{result['kept_bytes']:,} bytes between two steps",
        "arena": f"{result['arena_bytes']:,} bytes, with what a step works on",
        "proof": f"{result['outcome']}: no order of this step needs less than "
        f"{result['lower_bound_bytes']:,} bytes",
        "outputs": "those of the whole window, bit for bit: rows that see padding are made again",
    }
    if result["anew"]:
        facts["made anew from"] = "; ".join(result["anew"][:3])
    show.facts(f"{model} on a window that moves", facts)
