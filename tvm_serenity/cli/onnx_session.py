"""``serenity schedule``: the text about files for onnxruntime and about external data files."""

from pathlib import Path

from tvm_serenity.cli import show
from tvm_serenity.commands.onnx_session import SessionFile
from tvm_serenity.frontends import format_of, left_beside
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.onnx_session import snippet


def order_note(opened: ModelFile) -> str:
    """Return the note on which runtimes follow the operator order of the written file."""
    form = format_of(opened)
    return "" if form is None else form.after_order


def print_external_files(opened: ModelFile, output: str) -> None:
    """Print the external data files that must be copied beside the written model."""
    for name in left_beside(opened, output):
        source, target = opened.path.parent / name, Path(output).parent / name
        show.console.print(f"the weights are in another file: copy {source} to {target}")


def print_session(session: SessionFile) -> None:
    """Print the files written for onnxruntime, and the memory and time of a run."""
    figures, opened = session.figures, session.opened
    measured = figures["measured"]
    rows = {
        "predicted": f"{figures['peak_bytes']:,} bytes, in the given order "
        f"{figures['given_peak_bytes']:,}",
        "proof": f"{figures['outcome']}: no order needs less than "
        f"{figures['lower_bound_bytes']:,} bytes",
        "measured": "not on this system (needs /proc/self/clear_refs)",
    }
    if measured is not None:
        rows["measured"] = (
            f"{measured['ordered_bytes']:,} bytes of resident memory for runs; "
            f"the given file with default options takes {measured['default_bytes']:,}"
        )
        rows["time of a run"] = (
            f"{1000 * measured['ordered_seconds']:,.1f} ms, with default options "
            f"{1000 * measured['default_seconds']:,.1f}, one thread"
        )
        rows["outputs"] = (
            "bit-identical in both orders; largest difference to the default session "
            f"{measured['max_error']:.1e} of the largest value"
        )
    show.facts(f"{figures['model']} in onnxruntime: {figures['ops']} ops", rows)
    show.console.print(
        f"written to {figures['output']}, the session options to {figures['options_file']}"
    )
    print_external_files(opened, figures["output"])
    show.plain(snippet(figures["output"]))
