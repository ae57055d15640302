"""``serenity schedule``: what is printed of files for onnxruntime, and of data beside a file."""

from pathlib import Path

from tvm_serenity.cli import show
from tvm_serenity.commands.onnx_session import SessionFile
from tvm_serenity.frontends import format_of, left_beside
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.onnx_session import snippet


def said_of(opened: ModelFile) -> str:
    """Return what to know about who follows the order of a file that was written."""
    form = format_of(opened)
    return "" if form is None else form.after_order


def say_what_to_copy(opened: ModelFile, output: str) -> None:
    """Print which files with data of a model the file that was written looks for beside it."""
    for name in left_beside(opened, output):
        source, target = opened.path.parent / name, Path(output).parent / name
        show.console.print(f"its data is in another file: copy {source} to {target}")


def print_session(found: SessionFile) -> None:
    """Print what was written for onnxruntime, and what it takes."""
    result, opened = found.figures, found.opened
    measured = result["measured"]
    rows = {
        "predicted": f"{result['peak_bytes']:,} bytes, in the order before "
        f"{result['given_peak_bytes']:,}",
        "proof": f"{result['outcome']}: no order needs less than "
        f"{result['lower_bound_bytes']:,} bytes",
        "measured": "not on this system (needs /proc/self/clear_refs)",
    }
    if measured is not None:
        rows["measured"] = (
            f"{measured['ordered_bytes']:,} bytes more resident for runs; "
            f"as given, by default {measured['default_bytes']:,}"
        )
        rows["a run"] = (
            f"{1000 * measured['ordered_seconds']:,.1f} ms, by default "
            f"{1000 * measured['default_seconds']:,.1f}, one thread"
        )
        rows["outputs"] = (
            "the same bits in both orders; beside the default session "
            f"{measured['max_error']:.1e} of the largest"
        )
    show.facts(f"{result['model']} in onnxruntime: {result['ops']} ops", rows)
    show.console.print(f"written to {result['output']}, its options to {result['options_file']}")
    say_what_to_copy(opened, result["output"])
    show.plain(snippet(result["output"]))
