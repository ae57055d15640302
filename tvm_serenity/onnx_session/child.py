"""The child process: optimises an ``.onnx`` file, or runs it and reports its memory growth.

It reads one request as JSON from standard input, and writes one answer as the last line of standard
output.
"""

import ctypes
import json
import sys
import time
from typing import Any

_SEED, RUNS = 0, 3


def _session(request: dict[str, Any]) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    for name, value in request["options"].items():
        kind = type(getattr(options, name)) if isinstance(value, str) else None
        if name == "optimized_model_filepath" or kind is None:
            setattr(options, name, value)
        else:
            setattr(options, name, getattr(kind, value))
    return onnxruntime.InferenceSession(
        request["model"], options, providers=["CPUExecutionProvider"]
    )


def _status_bytes(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def _trim() -> None:
    """Return free memory to the system; otherwise runs would grow into it unmeasured."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # exists in the GNU C library
    if trim is not None:
        trim(0)


def _run(request: dict[str, Any]) -> dict[str, Any]:
    """Return the memory that ``RUNS`` runs add to a session, and the fastest run's seconds.

    The last run's outputs are saved if the request names a file. Pages of files do not count,
    because the file system decides how much of a program is mapped per page fault.
    """
    import numpy as np

    from tvm_serenity.validation.references.onnx_runtime import entry
    from tvm_serenity.validation.references.values import filled

    session = _session(request)
    feeds = {}
    for index, described in enumerate(session.get_inputs()):
        name, shape, dtype, zero = entry(described)
        named = zip(described.shape, shape, strict=True)
        sizes = {axis: d if d else f"{name}:{axis}" for axis, (d, _) in enumerate(named)}
        given = [request["dims"].get(sizes[axis], 1) for axis in range(len(shape))]
        extents = [g if e < 0 else e for g, e in zip(given, shape, strict=True)]
        feeds[name] = filled(extents, dtype, zero, _SEED, index)
    _trim()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")  # resets the high-water mark
    before, files, seconds = _status_bytes("VmRSS"), _status_bytes("RssFile"), []
    outputs: list[Any] = []
    for _ in range(RUNS):
        del outputs[:]
        started = time.perf_counter()
        outputs.extend(session.run(None, feeds))
        seconds.append(time.perf_counter() - started)
    extra = _status_bytes("VmHWM") - before - (_status_bytes("RssFile") - files)
    if request["outputs"]:
        np.savez(request["outputs"], *outputs)
    return {"extra_bytes": extra, "seconds": min(seconds)}


def main() -> None:
    """Read one request from standard input, and print the answer."""
    request = json.load(sys.stdin)
    try:
        if request["do"] == "optimise":
            _session(request)
            answer: dict[str, Any] = {}
        else:
            answer = _run(request)
    except ImportError as error:
        answer = {"missing": str(error.name or error)}
    except Exception as error:  # onnxruntime raises many types
        answer = {"refused": " ".join(str(error).split())[:300]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
