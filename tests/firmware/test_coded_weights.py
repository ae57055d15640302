"""Weights in an entropy code: the code, its decoder on the host, builds, refusals and a fault."""

import ctypes
import math
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases
from tests.firmware.projects import AD, model, needs_board, needs_host
from tvm_serenity.errors import InputError, WrongResultError
from tvm_serenity.firmware import Settings, build, kernels
from tvm_serenity.firmware.check.verify_report import report
from tvm_serenity.firmware.kernels import coded
from tvm_serenity.firmware.kernels.coded import MOST_BITS, encoded, lengths_of
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.fitting.search import fitted

FOLDER = Path(kernels.__file__).parent
FLAGS = "-O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error -shared -fPIC"
Decode = Callable[[Any, int], Any]


@pytest.fixture(scope="module")
def decode(tmp_path_factory: pytest.TempPathFactory) -> Decode:
    folder = tmp_path_factory.mktemp("decode")
    (folder / "decode.c").write_text(
        f'#include "{FOLDER}/common/decode.h"\n'
        "void run(const uint8_t *code, uint8_t *out, int32_t count, uint16_t *table)\n"
        "{\n    decode_bytes(code, out, count, table);\n}\n"
    )
    command = f"cc {FLAGS} decode.c -o decode.so"
    subprocess.run(command.split(), cwd=folder, check=True)
    run = ctypes.CDLL(str(folder / "decode.so")).run

    def decoded(code: Any, count: int) -> Any:
        code, out = np.ascontiguousarray(code), np.full(count + 1, 0x5A, np.uint8)
        table = np.full(257, 0x5A5A, np.uint16)
        pointers = (ctypes.c_void_p(a.ctypes.data) for a in (code, out))
        run(*pointers, count, ctypes.c_void_p(table.ctypes.data))
        assert (out[-1], table[-1]) == (0x5A, 0x5A5A)
        return out[:-1]

    return decoded


def drawn(seed: int) -> Any:
    """Bytes of any distribution: flat, around 0, of one value, of a few values with long words."""
    rng = np.random.default_rng(seed)
    count, kind = int(rng.integers(1, 3000)), seed % 4
    if kind == 0:
        return rng.integers(0, 256, count).astype(np.uint8)
    if kind == 1:
        around = rng.laplace(0, rng.uniform(0.1, 30), count)
        return np.clip(around, -128, 127).astype(np.int8).view(np.uint8)
    if kind == 2:
        return np.full(count, rng.integers(0, 256), np.uint8)
    return np.minimum(rng.geometric(0.5, count), 255).astype(np.uint8)


@needs_host
def test_bytes_come_back_in_little_more_than_their_entropy(decode: Decode) -> None:
    for seed in cases(60, most=4000):
        data = drawn(seed)
        code = encoded(data.tobytes())
        assert decode(code, len(data)).tobytes() == data.tobytes(), seed
        shares = [n / len(data) for n in Counter(data.tolist()).values()]
        entropy = sum(-p * math.log2(p) for p in shares) * len(data) / 8
        head = 2 + 2 * MOST_BITS + len(shares) + coded.ROOM_BYTES + 1
        assert code.nbytes <= head + entropy + len(data) / 8, seed


def test_words_are_at_most_15_bits_and_a_prefix_code() -> None:
    fibonacci = [1, 1]
    while len(fibonacci) < 40:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    lengths = lengths_of([*fibonacci, *[0] * 216])
    assert max(lengths) == MOST_BITS
    assert sum(2.0**-length for length in lengths if length) <= 1
    assert lengths[40:] == [0] * 216


@needs_host
def test_long_words_are_decoded(decode: Decode) -> None:
    data = np.repeat(np.arange(16), [2**i for i in range(16)]).astype(np.uint8)
    data = np.random.default_rng(1).permutation(data)
    code = encoded(data.tobytes())
    assert code[1] > 12
    assert decode(code, len(data)).tobytes() == data.tobytes()


@needs_board
def test_a_coded_network_is_exact_and_its_workspace_is_counted(tmp_path: Path) -> None:
    settings = Settings(name="net", output=tmp_path / "net", check=False, weights="coded")
    found = build(str(model(AD)), "cortex-m4:256K:512K", settings)
    assert found.facts["constant_bytes"] < 0.75 * 270_000
    largest = 640 * 128
    (arena,) = found.facts["arena_bytes"].values()
    assert largest + coded.TABLE_BYTES <= arena <= largest + coded.TABLE_BYTES + 2048
    said = report(found, on_host=False, inputs=1)
    assert said["identical"]
    assert said["litert_tensors"] > 5
    forms = [c["form"] for one in found.facts["choices"] for c in one["candidates"]]
    assert any("coded weights" in form for form in forms)


def test_the_search_codes_weights_where_nothing_else_fits() -> None:
    settings = Settings(name="net", check=False)
    goal = FitGoal(flash_bytes=230_000)
    found = fitted(str(model(AD)), "cortex-m4:256K:1M", goal, settings, every=False)
    assert found.chosen is not None
    assert found.chosen.candidate.settings.weights == "coded"
    assert found.chosen.flash_bytes <= 230_000
    limit = found.chosen.candidate.settings.constants_limit_bytes
    assert limit is not None
    assert found.chosen.candidate.made.program.constant_bytes <= limit
    assert f"for {limit:,} bytes" in found.chosen.strategy
    all_coded = [one for one in found.points if one.candidate.settings.weights == "coded"]
    all_coded = [o for o in all_coded if o.candidate.settings.constants_limit_bytes is None]
    spent = [one.run.least if one.run else 0 for one in (found.chosen, all_coded[0])]
    assert 0 < 1.5 * spent[0] < spent[1], "layers keep faster weights as far as they fit"
    wide = fitted(str(model(AD)), "cortex-m4:256K:1M", FitGoal(), settings, every=False)
    assert wide.chosen is not None
    assert wide.chosen.candidate.settings.weights == "fast"


@needs_host
def test_a_wrong_word_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wrong(data: bytes) -> Any:
        code = encoded(data).copy()
        code[-coded.ROOM_BYTES - 9] ^= 1
        return code

    monkeypatch.setattr(coded, "encoded", wrong)
    settings = Settings(name="net", output=tmp_path / "net", weights="coded")
    with pytest.raises(WrongResultError):
        build(str(model(AD)), "generic:256K:512K", settings)
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rows": 2}, "--rows"),
        ({"sliding": 1}, "--sliding"),
        ({"fast_memory_bytes": 4096}, "--fast-memory"),
        ({"codegen": "llvm"}, "--codegen"),
    ],
)
def test_what_it_does_not_go_with_is_named(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        Settings(weights="coded", **more)
    assert "--weights" in str(refused.value)
    if "codegen" not in more:
        Settings(weights="small", **more)


def test_a_limit_on_constants_needs_other_forms_of_weights() -> None:
    with pytest.raises(InputError, match=r"--constants-limit.*--weights"):
        Settings(constants_limit_bytes=1000)
