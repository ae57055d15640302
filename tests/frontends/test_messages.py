"""Refusals of a corpus of models, as commands print them: no text of TVM's, ONNX's or Python's."""

import random
import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("tvm")
pytest.importorskip("torch")
from tests.cases import scaled
from tests.cli.run import serenity
from tests.frontends.refusals import Model, onnx_models, tflite_models, torch_models
from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.relax import _importer, to_relax

FOREIGN = re.compile(
    r"\b[RTI]\.\w+\(|\blv\d*\b|\w*Var\(|%\d|<class|\b\w+Error\b|NoneType|Traceback|\btvm\.|::"
    r"|\.(cc|cpp|py)\b|0x[0-9a-f]{5,}|object at|\bExpr\b|GenericConst|unk__"
)
NAMES = re.compile(r"(operator|tensor|value|node|dimension) \S+")
COMMANDS = ("compile", "schedule", "explain", "build")
KINDS = {"onnx": onnx_models, "tflite": tflite_models, "torch": torch_models}
STAGE = re.compile(
    r"^serenity: (reading|ordering|building|compiling|writing) [^\n:]*\n", re.MULTILINE
)
"""Lines of progress before a refusal."""
COUNT = {"onnx": scaled(15, 1000), "tflite": scaled(16, 1000), "torch": scaled(3, 100)}
LEAST_REFUSED = {"onnx": scaled(3, 80), "tflite": scaled(6, 400), "torch": scaled(1, 8)}


def faults(text: str) -> list[str]:
    """What is wrong with the message of a refusal."""
    found = [f"foreign text {m[0]!r}" for m in FOREIGN.finditer(text)]
    if not NAMES.search(text):
        found.append("names nothing")
    if "; " not in text:
        found.append("no remedy")
    if "\n" in text.strip():
        found.append("several lines")
    return found


def refusals(model: Model, path: Path, draw: random.Random) -> list[str]:
    """What the import, and a command where it is refused, say."""
    data = model.make()
    if data is None:
        return []
    path.write_bytes(data)
    try:
        to_relax(path)
    except SerenityError as error:
        said = str(error).replace(str(path), "model")
    else:
        return []
    command = draw.choice(COMMANDS)
    more = ("--board", "microbit", "-o", path.with_suffix("")) if command == "build" else ()
    ended = serenity(command, path, *more, columns=1000)
    if ended.returncode == 0 and command in ("schedule", "explain"):
        return [said]  # whose sizes are known is ordered, whatever it computes
    assert ended.returncode == 2, ended
    text = STAGE.sub("", ended.stderr).replace(str(path), "model")
    return [said, " ".join(text.split()) if text.count("\n") == 1 else text]


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_say_what_and_why_in_plain_words(kind: str, tmp_path: Path) -> None:
    draw, wrong, refused = random.Random(48), [], 0
    models = list(KINDS[kind]())
    for model in draw.sample(models, min(COUNT[kind], len(models))):
        said = refusals(model, tmp_path / f"model{model.suffix}", draw)
        refused += bool(said)
        wrong += [f"{model.name}: {fault}: {s[:300]}" for s in said for fault in faults(s)]
    assert not wrong, "\n".join(wrong)
    assert refused >= LEAST_REFUSED[kind]


@pytest.mark.parametrize(
    "text",
    [
        "model: operator Add (output 'y'): TVM makes R.Tensor((2,)) of it; fix it",
        "model: value 'lv12' has no shape; fix it",
        "model: operator Add: KeyError: 'x'; fix it",
        "model: operator Add: it is not there",
        "model: it is not there; fix it",
    ],
)
def test_faults_of_messages_are_found(text: str) -> None:
    assert faults(text)


def test_what_a_converter_raises_is_not_shown() -> None:
    with (
        pytest.raises(SerenityError, match=r"^operator Add \('y'\): TVM's importer") as caught,
        _importer.placed("operator Add ('y')", lambda: "reads float32[2]"),
    ):
        raise KeyError("R.Tensor lv12")
    assert not faults(str(caught.value))
