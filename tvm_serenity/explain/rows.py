"""Partial execution as a measure: operators split into bands of rows, ordered and placed."""

from tvm_serenity.errors import InputError
from tvm_serenity.explain.claims import Claim
from tvm_serenity.explain.measures import Measure
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.frontends.tflite_rows import network_of
from tvm_serenity.rows.choose import check_splittable
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Limits, stream

BAND_ROWS = 4
"""Rows in a band: few enough for most of the gain, so many that the search ends at once."""

TIME_LIMIT_S = 5.0


def rows_measure(file: ModelFile, time_limit_s: float | None = None) -> Measure | Claim:
    """Return what bands of :data:`BAND_ROWS` rows make of a model, or why it has none."""
    how = f"rows --bands {BAND_ROWS} --graph"
    try:
        if not isinstance(file, TfliteFile):
            raise InputError("only .tflite files are read here, serenity rows reads kernels too")
        network = network_of(file)
        check_splittable(network)
    except InputError as error:
        reason = str(error).removeprefix(f"{file.path.name}: ")
        return Claim("refused", f"Row streaming was not tried: {reason}.", {"reason": reason})
    limit = TIME_LIMIT_S if time_limit_s is None else min(TIME_LIMIT_S, time_limit_s)
    found = stream(network, heights_of(network, BAND_ROWS), limits=Limits(limit)).schedule
    words = f"Row streaming in bands of {BAND_ROWS} rows"
    return Measure("rows", how, words, found.peak_bytes, found.lower_bound_bytes, found.outcome)
