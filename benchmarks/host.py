"""Time and memory on this machine's processor, beside TVM's own pipeline, LiteRT and onnxruntime.

    python benchmarks/host.py [--runs N] [--threads N] [MODEL ...]
    python benchmarks/host.py --profile MODEL [--threads N]
    python benchmarks/host.py --trials N MODEL ...

Each runtime loads and runs a model in a process of its own: median of the runs after a warm-up,
and resident memory above that of the runtime without a model: the most, and what stays. Ours and
TVM's are compiled for this machine ("native"), before that process begins; ours is written and
loaded as ``serenity compile -o`` does. ``--profile``: microseconds of
each of our kernels, the median of runs of it alone on the tensors that the network gives it.
``--trials``: ours and stock TVM, each as it is and tuned with up to N trials a kernel: ours by
``serenity tune``, TVM's by MetaSchedule in its own space for CPUs, by the same search; nothing of
what is shipped is used.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "models"
MODELS = (
    "mlperf_tiny/kws_dscnn_int8.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_int8.tflite",
    "mlperf_tiny/ic_resnet8_int8.tflite",
    "mlperf_tiny/ic_resnet_large_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "mcunet/mcunet_vww_int8.tflite",
    "misc/mobilenet_v1_0.25_128_quant.tflite",
    "wild/mobilenet_v1_0.5_160_quant.tflite",
    "swiftnet/swiftnet_vww_224_uint8.tflite",
    "tflm/person_detect.tflite",
    "mltk/mltk_rock_paper_scissors.tflite",
    "misc/style_transfer_quantized_384.tflite",
    "mlperf_tiny/kws_dscnn_fp32.tflite",
    "mlperf_tiny/vww_mobilenetv1_96_fp32.tflite",
    "mlperf_tiny/ic_resnet8_fp32.tflite",
    "mlperf_tiny/ic_resnet8_fp32.onnx",
    "mlperf_tiny/vww_mobilenetv1_96_fp32.onnx",
    "detection/face_detection_front.tflite",
    "wild/face_detection_full_range_sparse.tflite",
    "wild/face_landmark.tflite",
    "detection/yunet_n_320_320.onnx",
    "detection/fastestdet.onnx",
    "onnx_light/light_squeezenet.onnx",
    "onnx_light/light_shufflenet.onnx",
    "onnx_light/light_densenet121.onnx",
    "zoo:mobilenet-v2?size=96",
    "zoo:swiftnet",
    "zoo:nasnet-cell",
    "zoo:darts-normal-cell",
    "torch:mobilenet_v2",
    "torch:resnet18",
    "torch:unet",
    "torch:nasnet_cell",
    "torch:vit_tiny",
    *("keras:mobilenet_v1_96", "keras:mobilenet_v2_96", "keras:mobilenet_v3_small_96"),
    *("keras:mobilenet_v2_224", "keras:mobilenet_v3_large_224", "keras:efficientnet_b0_224"),
)
"""Files below ``shared``; networks of the zoo, which only TVM runs; those of PyTorch, as ONNX, and
of Keras, in 8-bit integers (where ``KERAS_PYTHON`` names a Python that has tensorflow)."""
WRITERS = {"torch": ("torch_networks.py", ".onnx"), "keras": ("keras_networks.py", ".tflite")}
"""By kind of network which program writes it, and into what."""


def path_of(model: str, folder: Path) -> str:
    """Return the path of a model, or the name of a network of the zoo; others go to a folder."""
    kind, _, name = model.partition(":")
    if kind == "zoo":
        return model
    if kind not in WRITERS:
        return str(DATA / model)
    writer, suffix = WRITERS[kind]
    script, file = Path(__file__).with_name(writer), folder / f"{name}{suffix}"
    python = os.environ.get("KERAS_PYTHON") if kind == "keras" else sys.executable
    if python is None:
        raise LookupError(f"{model}: KERAS_PYTHON names no Python that has tensorflow")
    words = [python, "-W", "ignore", str(script), name, str(file)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return str(file)


def compiled(model: str, folder: Path, threads: int, trials: int = 0) -> dict[str, int]:
    """Export all libraries; the bytes of the arena, and of what TVM's pipeline allocates.

    ``trials``: of tuning; 0: what is shipped is used, and nothing tuned.
    """
    sys.path.insert(0, str(ROOT))
    import numpy as np

    from tvm_serenity.commands.models import source
    from tvm_serenity.relax.compiled import built
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host
    from tvm_serenity.runtime import library
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run
    from tvm_serenity.tvm_targets import native
    from tvm_serenity.validation.network_inputs import random_inputs

    opened = source(model)
    inputs = random_inputs(opened.module("off"))
    np.savez(folder / "inputs.npz", *inputs)
    memory: dict[str, int] = {}
    shipped = Steps(threads=threads)
    steps = replace(shipped, measured="none") if trials else shipped
    usual = prepared_for_host(opened.module(), steps, native())
    builds = [("ours", usual.kernels, serenity_pipeline())]
    builds.append(("tvm", opened.module("off"), "default"))
    if trials:
        builds.append(("ours-tuned", our_tuned(usual, trials, folder), serenity_pipeline()))
        builds.append(("tvm-tuned", stock_tuned(opened.module("off"), trials, folder), "default"))
    for name, start, pipeline in builds:
        made_of = built(start, native(), pipeline)
        if name.startswith("ours"):
            (folder / name).mkdir()
            library.write(made_of, folder / name, {"needs": library.needs(native())})
        else:
            made_of.export(folder / f"{name}.so")
        made = run(made_of.executable, inputs)
        memory[name] = made.allocated_bytes - sum(a.nbytes for a in made.outputs)
    return memory


def our_tuned(usual: Any, trials: int, folder: Path) -> Any:
    """Return the module of ours, with the forms that ``serenity tune`` finds."""
    from tvm_serenity.kernels.measured import class_of, write
    from tvm_serenity.tuning.tune import tune

    began, file = time.perf_counter(), folder / "kernels.json"
    found = tune(usual, trials)
    write({one.key: one.measured for one in found}, class_of(usual.target), file)
    print(f"ours: tuned in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return replace(usual, steps=replace(usual.steps, measured=str(file))).kernels


def stock_tuned(module: Any, trials: int, folder: Path) -> Any:
    """Return a module with the kernels that MetaSchedule finds in TVM's own space for CPUs."""
    import logging

    import tvm
    from tvm import relax
    from tvm.s_tir import meta_schedule as ms

    from tvm_serenity.tuning.search import evolution
    from tvm_serenity.tuning.workers import builder, runner
    from tvm_serenity.tvm_targets import native

    logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.WARNING)
    began, kernels = time.perf_counter(), 1000
    target = tvm.target.Target({**native().export(), "num-cores": 1})
    passes = [relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings()]
    with target:
        made = tvm.transform.Sequential([*passes, relax.get_pipeline("zero")])(module)
        found = ms.relax_integration.tune_relax(
            made,
            {},
            target,
            str(folder / "tuning"),
            trials * kernels,
            trials,
            num_trials_per_iter=min(trials, 16),
            builder=builder(folder),
            runner=runner(),
            strategy=evolution(),
            seed=1,
        )
        with found:
            made = relax.transform.MetaScheduleApplyDatabase()(made)
    print(f"stock TVM: tuned in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return made


def runner(runtime: str, model: str, folder: Path, threads: int) -> Any:
    """A function that runs the model once; imports are done when it returns."""
    import numpy as np

    inputs = list(np.load(folder / "inputs.npz").values())
    if runtime.startswith(("ours", "tvm")):
        import tvm
        from tvm import relax

        if runtime.startswith("ours"):
            from tvm_serenity.runtime import library

            machine = library.load(folder / runtime)
        else:
            machine = relax.VirtualMachine(
                tvm.runtime.load_module(str(folder / f"{runtime}.so")), tvm.cpu()
            )
        given = [tvm.runtime.tensor(array) for array in inputs]
        main = machine["main"]
        return lambda: main(*given)
    if runtime == "litert":
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model, num_threads=threads)
        interpreter.allocate_tensors()
        entries = interpreter.get_input_details()
        for entry, array in zip(entries, inputs, strict=True):
            interpreter.set_tensor(entry["index"], array)
        return interpreter.invoke
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options)
    feed = dict(zip((i.name for i in session.get_inputs()), inputs, strict=True))
    return lambda: session.run(None, feed)


def resident_bytes(which: str) -> int:
    """Resident memory of this process: now (``VmRSS``), or the most noted (``VmHWM``)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{which}:"))


def child(runtime: str, model: str, folder: Path, threads: int, runs: int) -> None:
    """Load, run and print milliseconds and resident bytes: what a process of its own does."""
    packages = {
        "litert": "ai_edge_litert.interpreter",
        "onnxruntime": "onnxruntime",
        "ours": "tvm_serenity.runtime.library",
        "ours-tuned": "tvm_serenity.runtime.library",
    }
    __import__(packages.get(runtime, "tvm"))
    __import__("numpy")
    Path("/proc/self/clear_refs").write_text("5")  # the most is noted from here on
    before = resident_bytes("VmRSS")
    once = runner(runtime, model, folder, threads)
    once()
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        once()
        taken.append(time.perf_counter() - began)
    most, stays = (resident_bytes(which) - before for which in ("VmHWM", "VmRSS"))
    ms = statistics.median(taken) * 1e3
    print(json.dumps({"ms": ms, "most_bytes": most, "resident_bytes": stays}))


def kernels(folder: Path, runs: int) -> list[tuple[str, float]]:
    """Return each kernel that runs, in order, and its median seconds."""
    import numpy as np
    import tvm

    from tvm_serenity.runtime import library

    loaded = tvm.runtime.load_module(str(folder / "ours" / library.LIBRARY))
    machine = library.load(folder / "ours")
    found: list[tuple[str, float]] = []

    def watch(_function: Any, name: str, before: bool, _result: Any, *arguments: Any) -> None:
        if not before or name.startswith("vm."):
            return
        timed = loaded.time_evaluator(name, tvm.cpu(), number=1, repeat=runs, min_repeat_ms=1)
        found.append((name, float(np.median(timed(*arguments).results))))

    machine.set_instrument(watch)
    machine["main"](*(tvm.runtime.tensor(a) for a in np.load(folder / "inputs.npz").values()))
    return found


def profile(model: str, threads: int, runs: int) -> None:
    """Print what each kernel of ours takes, the longest first; equal ones in one row."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as made:
        compiled(path_of(model, Path(made)), Path(made), threads)
        found = kernels(Path(made), runs)
    whole = sum(seconds for _, seconds in found)
    print(f"{model}: {len(found)} kernels, {whole * 1e6:,.1f} us")
    print("| kernel | calls | us | share |\n|---|---|---|---|")
    names = dict.fromkeys(name for name, _ in found)
    each = {name: [s for other, s in found if other == name] for name in names}
    for name, taken in sorted(each.items(), key=lambda pair: -sum(pair[1])):
        share = sum(taken) / whole
        print(f"| {name} | {len(taken)} | {sum(taken) * 1e6:,.1f} | {share:.0%} |")


def measured(
    runtime: str, model: str, folder: Path, threads: int, runs: int
) -> dict[str, Any] | None:
    """What a runtime takes, in a process of its own; None where it does not load the model."""
    words = [sys.executable, __file__, "--child", runtime, str(folder), model]
    words += ["--threads", str(threads), "--runs", str(runs)]
    environment = {**os.environ, "TVM_NUM_THREADS": str(threads)}
    made = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if made.returncode:
        print(f"{runtime}, {model}: {made.stderr.splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(made.stdout.splitlines()[-1])


def row(model: str, threads: int, runs: int) -> None:
    """Print a model's row."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = path_of(model, folder)
        rival = {".onnx": ("onnxruntime",), ".tflite": ("litert",)}.get(Path(path).suffix, ())
        arena = compiled(path, folder, threads)
        found = {
            name: measured(name, path, folder, threads, runs) for name in ("ours", "tvm", *rival)
        }
    ours = found["ours"]
    assert ours is not None
    cells = [f"{ours['ms']:.3f}"]
    for name in ("tvm", *(rival or ("-",))):
        one = found.get(name)
        cells.append("-" if one is None else f"{one['ms']:.3f} ({ours['ms'] / one['ms']:.2f})")
    cells += [f"{arena['ours']:,}", f"{arena['tvm']:,}"]
    cells += [
        "-" if f is None else f"{f['most_bytes'] / 1e6:.1f} / {f['resident_bytes'] / 1e6:.1f}"
        for f in found.values()
    ]
    cells += ["-"] * (not rival)
    print(f"| {Path(model).name} | " + " | ".join(cells) + " |", flush=True)


TUNED = ("ours", "ours-tuned", "tvm", "tvm-tuned")


def tuned_row(model: str, trials: int, runs: int) -> None:
    """Print a model's row of ``--trials``: the least of three processes each, in turns."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = path_of(model, folder)
        memory = compiled(path, folder, 1, trials)
        taken: dict[str, list[float]] = {name: [] for name in TUNED}
        for name in TUNED * 3:
            found = measured(name, path, folder, 1, runs)
            assert found is not None
            taken[name].append(found["ms"])
    cells = [f"{min(taken[name]):.3f}" for name in TUNED]
    cells += [f"{memory[name]:,}" for name in TUNED]
    print(f"| {Path(model).name} | {trials} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=31)
    parser.add_argument("--child", nargs=2, metavar=("RUNTIME", "FOLDER"))
    parser.add_argument("--profile", metavar="MODEL")
    parser.add_argument("--trials", type=int, default=0)
    given = parser.parse_args()
    if given.profile:
        profile(given.profile, given.threads, given.runs)
        return
    if given.child:
        child(given.child[0], given.models[0], Path(given.child[1]), given.threads, given.runs)
        return
    if given.trials:
        names = "ours | ours, tuned | stock TVM | stock TVM, tuned"
        print(f"| model | trials a kernel | ms: {names} | bytes: {names} |\n|" + "---|" * 10)
        for model in given.models:
            tuned_row(model, given.trials, given.runs)
        return
    print(
        "| model | ours, ms | stock TVM (ours / it) | LiteRT or onnxruntime (ours / it) | arena | "
        "stock TVM's memory | resident MB (most / stays), ours | stock TVM | "
        "LiteRT or onnxruntime |"
    )
    print("|" + "---|" * 9)
    for model in given.models:
        try:
            row(model, given.threads, given.runs)
        except LookupError as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
