"""Models as data: blobs that a kernel set, compiled once, loads and runs, or refuses."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import cases, only_exhaustive, scaled
from tests.cli.run import serenity
from tests.firmware.drawn_kernels import kernels
from tests.firmware.projects import needs_board, needs_host
from tests.firmware.small import counting
from tvm_serenity import firmware
from tvm_serenity.architectures import architecture
from tvm_serenity.boards import board
from tvm_serenity.errors import CheckError, InputError, UnsupportedError, WrongResultError
from tvm_serenity.firmware import Settings
from tvm_serenity.firmware.blob import check, image, in_qemu
from tvm_serenity.firmware.blob.check import aligned, loaded
from tvm_serenity.firmware.blob.cost import project_bytes, set_bytes
from tvm_serenity.firmware.blob.image import (
    CONSTANT,
    HEADER,
    SUMMED_FROM,
    VARIES,
    blob,
    checksum,
)
from tvm_serenity.firmware.blob.kernel_set import (
    SET_FILE,
    KernelSet,
    SetKernel,
    extended,
    in_set,
    kernel_set,
    missing,
    read_set,
    set_json,
)
from tvm_serenity.firmware.board import image as linked_image
from tvm_serenity.firmware.board.execute import qemu
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.compile.fallback import make
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.emit.project import Layout, project, write_files
from tvm_serenity.firmware.integers import INTEGERS, integer, plain, template
from tvm_serenity.firmware.program import Param, Program

BOARD = "mps2-an386"
OK, TRUNCATED, NO_BLOB, DAMAGED, WRONG_CORE = 0, -2, -3, -4, -5
MISALIGNED = -6
SMALL_ARENA, MISSING_KERNEL, LARGE_LAYER = -7, -8, -9


def network(seed: int, *, pooled: bool = False, channels: int = 8) -> Any:
    """A quantised network; another seed has other weights and quantisation."""
    from tvm_serenity.zoo.net import module
    from tvm_serenity.zoo.quantised import QuantisedNet
    from tvm_serenity.zoo.window import same

    def write(net: Any) -> Any:
        x = net.input("x", 3, 8)
        y = net.relu6(net.conv(x, channels, same(3, 2)))
        z = net.add(net.relu6(net.depthwise(y, same(3))), net.conv(y, channels))
        return net.stored(net.mean(z) if pooled else net.conv(z, 4))

    return module(write, "NHWC", seed, QuantisedNet)


def program(
    seed: int, target: str = BOARD, settings: Settings | None = None, **options: Any
) -> Program:
    """The program of a network, without the checks of a build."""
    settings = settings or Settings()
    module = opened(network(seed, **options), settings).module
    return make(module, "net", board(target), settings).program


@pytest.fixture(scope="module")
def first() -> Program:
    """The program that the kernel set of most tests is made for."""
    return program(1)


def run(data: bytes, known: KernelSet, made: Program, arena_bytes: int | None = None) -> Any:
    """Return the code of the loader for a blob, and the outputs for an input of ones."""
    inputs = [np.ones(made.tensors[t].shape, made.tensors[t].dtype) for t in made.inputs]
    sizes = [made.tensors[t].size_bytes for t in made.outputs]
    arena = known if arena_bytes is None else replace(known, arena_bytes=arena_bytes)
    ((code, outputs),) = loaded(data, arena, [inputs], sizes)
    return code, outputs


def summed(data: bytes | bytearray) -> bytes:
    """Return a blob with the checksum of its content."""
    made = bytearray(data)
    struct.pack_into("<I", made, 4 * HEADER.index("checksum"), checksum(made))
    return bytes(made)


def changed(data: bytes, at: int, value: int) -> bytes:
    """Return a blob with another word at byte ``at``, and the checksum of that content."""
    made = bytearray(data)
    struct.pack_into("<I", made, at, value)
    return summed(made)


def word(data: bytes, name: str) -> int:
    """Return a word of a blob's header."""
    return int(struct.unpack_from("<I", data, 4 * HEADER.index(name))[0])


@needs_host
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m0plus", "cortex-m55"])
def test_a_template_with_its_integers_is_the_kernel(core: str) -> None:
    """Each kernel of the library: its template reads what the plain kernel has as literals."""
    marked = 0
    for drawn in kernels(core, cases(scaled(2, 12))):
        body = drawn.made.kernel.body
        made = template(body)
        text = made.text.format(*made.extents)
        for i, value in reversed(list(enumerate(made.integers))):
            text = text.replace(f"((uint16_t){INTEGERS}[{i}])", str(value))
            text = text.replace(f"{INTEGERS}[{i}]", str(value))
        assert text == plain(body).replace("static const", "const")
        assert "«" not in text
        marked += len(made.integers)
    assert marked > 100


def test_numbers_beyond_32_bits_stay_in_the_template() -> None:
    body = f"{integer(1 << 31, 'int64')} {integer(-5, 'int64')} {integer(-(1 << 31))}"
    assert plain(body) == "INT64_C(2147483648) INT64_C(-5) INT32_MIN"
    made = template(body)
    assert made.text == f"INT64_C(2147483648) ((int64_t){INTEGERS}[0]) {INTEGERS}[1]"
    assert made.integers == (-5, -(1 << 31))


@needs_host
@needs_board
def test_an_update_over_the_air_needs_no_new_code(tmp_path: Path) -> None:
    """A retrained model runs in firmware that was linked for the first one, bit by bit."""
    target, old = board(BOARD), Settings(format="blob", name="old", output=tmp_path / "old")
    before = firmware.build(network(1), BOARD, old)
    fact = before.facts["blob"]
    assert fact["instructions"] <= 1.05 * fact["project_instructions"]
    assert fact["compared_inputs"] == check.MOST_INPUTS
    assert fact["set_code_bytes"] < 2 * fact["project_code_bytes"]
    known = read_set(tmp_path / "old")
    folder = tmp_path / "firmware"
    folder.mkdir()
    in_qemu.write_harness(folder, known, program(1), target, 1024)
    newer = Settings(
        format="blob", name="newer", output=tmp_path / "new", kernel_set=tmp_path / "old"
    )
    after = firmware.build(network(2), BOARD, newer)
    assert sorted(after.files) == ["LICENSE", "NOTICE", "newer.blob"]
    assert after.facts["blob"]["new_kernels"] == []
    elf = folder / "build" / "harness.elf"
    images = []
    for made, name in ((before, "old.blob"), (after, "newer.blob")):
        given = [array.tobytes() for array in made.reference_inputs()]
        ran = in_qemu.run(folder, target, made.files[name], given, 1)
        assert ran.outputs == (made.reference["output0"].tobytes(),)
        images.append(elf.read_bytes())
    assert images[0] == images[1]
    damaged = bytearray(after.files["newer.blob"])
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(CheckError, match=f"refused {-DAMAGED} "):
        in_qemu.run(folder, target, bytes(damaged), given, 1)


@needs_host
@needs_board
def test_one_firmware_runs_two_models_one_of_them_in_bands(tmp_path: Path) -> None:
    """Networks with other layers, in one program that is linked once; outputs are the projects'."""
    target = board(BOARD)
    made = [
        program(1, settings=Settings(rows=1, overlap=True)),
        program(3, pooled=True, channels=12),
    ]
    known = extended(kernel_set(made[0], "cortex-m4"), made[1])
    folder = tmp_path / "firmware"
    folder.mkdir()
    in_qemu.write_harness(folder, known, made[0], target, 1024)
    images = []
    assert target.qemu is not None
    for number, one in enumerate(made):
        random = np.random.default_rng(number)
        given = [random.bytes(one.tensors[t].size_bytes) for t in one.inputs]
        ran = in_qemu.run(folder, target, blob(one, known), given, 1)
        images.append((folder / "build" / "harness.elf").read_bytes())
        (tmp_path / str(number)).mkdir()
        write_files(project(one, Layout(target)), tmp_path / str(number))
        alone = qemu(tmp_path / str(number), target.qemu, given, 1)
        assert ran.outputs == alone.outputs
        assert len(set(ran.outputs[0])) > 2
    assert images[0] == images[1]


@needs_host
def test_each_kind_of_damage_is_refused(first: Program) -> None:
    known = kernel_set(first, "cortex-m4")
    data = blob(first, known)
    assert run(data, known, first)[0] == OK
    random = np.random.default_rng(5)
    for size in {0, 3, 4 * len(HEADER), len(data) - 4, *random.integers(0, len(data), 4).tolist()}:
        assert run(data[:size], known, first)[0] == TRUNCATED, size
    for bit in random.integers(8 * SUMMED_FROM, 8 * len(data), scaled(12, 200)).tolist():
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        code, outputs = run(bytes(flipped), known, first)
        assert code in (DAMAGED, TRUNCATED), bit
        assert not any(map(any, outputs)), "nothing is run"
    assert run(changed(data, 0, 7), known, first)[0] == NO_BLOB
    assert run(changed(data, 4, image.VERSION + 1), known, first)[0] == NO_BLOB
    assert run(data, known, first, known.arena_bytes - 1)[0] == SMALL_ARENA
    assert run(data, replace(known, core="cortex-m55"), first)[0] == WRONG_CORE
    assert run(data, replace(known, kernels=known.kernels[1:]), first)[0] == MISSING_KERNEL
    renamed = replace(known.kernels[0], digest="5a" * 8)
    assert (
        run(data, replace(known, kernels=(renamed, *known.kernels[1:])), first)[0] == MISSING_KERNEL
    )


@needs_host
def test_offsets_outside_of_blob_and_arena_are_refused(first: Program) -> None:
    """The checksum is right: the bounds find what it cannot."""
    known = kernel_set(first, "cortex-m4")
    data = blob(first, known)
    calls, edges = word(data, "calls"), word(data, "edges")
    beyond = (len(data) + 3) // 4 * 4
    fields = {name: 4 * HEADER.index(name) for name in HEADER}
    (step,) = struct.unpack_from("<I", data, calls)
    (integers,) = struct.unpack_from("<I", data, step + 4)
    appended = bytearray(data + data[calls : calls + 4])
    for name, value in (("size", len(appended)), ("calls", len(data)), ("call_count", 2)):
        struct.pack_into("<I", appended, fields[name], value)
    varying = summed(
        bytes(appended[: step + 8]) + struct.pack("<I", VARIES) + appended[step + 12 :]
    )
    wrong = {
        "calls behind the end": changed(data, fields["calls"], beyond),
        "calls between words": changed(data, fields["calls"], calls + 2),
        "edges behind the end": changed(data, fields["edges"], beyond),
        "kernels behind the end": changed(data, fields["kernels"], beyond),
        "too many calls": changed(data, fields["call_count"], 1 << 30),
        "too many inputs": changed(data, fields["input_count"], 1 << 31),
        "an input behind the arena": changed(data, edges, known.arena_bytes + 1024),
        "an input that ends behind it": changed(data, edges, known.arena_bytes - 1),
        "a state of an output that is not": changed(data, edges + 20, 1),
        "a step behind the end": changed(data, calls, beyond),
        "a step between words": changed(data, calls, step + 2),
        "a step without its arguments": changed(data, calls, len(data) - 8),
        "a kernel that the blob has not": changed(data, step, 255 | data[step + 2] << 16),
        "integers behind the end": changed(data, step + 4, beyond),
        "integers between words": changed(data, step + 4, integers + 2),
        "a second call behind the end": summed(appended) + data[calls : calls + 4],
        "a place behind the end": varying,
        "an argument behind the arena": changed(data, step + 8, known.arena_bytes),
        "an argument too long": changed(data, step + 12, known.arena_bytes + 1),
        "a constant behind the end": changed(data, step + 16, CONSTANT + beyond),
        "a result in the blob": changed(data, step + 8 * data[step + 2], CONSTANT + calls),
    }
    for name, made in wrong.items():
        assert run(made, known, first)[0] == DAMAGED, name
    more = [replace(k, params=(*k.params, Param("more", "int8", True))) for k in known.kernels]
    assert run(data, replace(known, kernels=tuple(more)), first)[0] == DAMAGED, "arguments"


@needs_host
def test_a_layer_larger_than_the_set_is_refused(first: Program) -> None:
    known = kernel_set(first, "cortex-m4")
    smaller = replace(known, kernels=tuple(map(_halved, known.kernels)))
    assert any(one.extents for one in known.kernels)
    assert run(blob(first, known), smaller, first)[0] == LARGE_LAYER
    assert any("larger local arrays" in reason for reason in missing(smaller, first))


def _halved(kernel: SetKernel) -> SetKernel:
    return replace(kernel, extents=tuple(max(n // 2, 1) for n in kernel.extents))


@needs_host
def test_memory_that_is_not_aligned_is_refused(
    first: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = kernel_set(first, "cortex-m4")
    data = blob(first, known)
    assert aligned(100).ctypes.data % 16 == 0
    for shift in (1, 2, 4, 8):  # blob and arena: at 4 and 8 the blob of this model may lie
        monkeypatch.setattr(check, "aligned", lambda size, by=shift: aligned(size + by)[by:])
        assert run(data, known, first)[0] == MISALIGNED, shift
        higher = changed(data, 4 * HEADER.index("arena_alignment"), shift)
        assert run(higher, known, first)[0] == (OK if shift >= 4 else MISALIGNED), shift


@pytest.mark.parametrize(
    "target", ["qemu-virt", *map(only_exhaustive, ("mps2-an385", "mps3-an547"))]
)
def test_a_blob_runs_on_other_cores(target: str, tmp_path: Path) -> None:
    """The same network and input, as a project and as data, in the emulator of the board."""
    known_board = board(target)
    toolchain = architecture(known_board.architecture).toolchain
    if not have("make", toolchain.compiler, toolchain.emulator.program):
        pytest.skip(f"needs {', '.join(toolchain.packages)}")
    made = program(2, target)
    known = kernel_set(made, known_board.core.name)
    given = [np.arange(made.tensors[t].size_bytes, dtype=np.uint8).tobytes() for t in made.inputs]
    for name in ("blob", "project"):
        (tmp_path / name).mkdir()
    in_qemu.write_harness(tmp_path / "blob", known, made, known_board, 1024)
    ran = in_qemu.run(tmp_path / "blob", known_board, blob(made, known), given, 1)
    write_files(project(made, Layout(known_board)), tmp_path / "project")
    assert known_board.qemu is not None
    alone = qemu(tmp_path / "project", known_board.qemu, given, 1)
    assert ran.outputs == alone.outputs
    assert len(set(ran.outputs[0])) > 4
    assert 0 < set_bytes(known, known_board) < 3 * project_bytes(made, Layout(known_board))


@needs_host
def test_a_set_of_several_models_runs_the_earlier_blobs(first: Program) -> None:
    alone, other = kernel_set(first, "cortex-m4"), program(3, pooled=True, channels=12)
    lacking = missing(alone, other)
    assert lacking
    both = extended(alone, other)
    assert [k.digest for k in both.kernels[: len(alone.kernels)]] == [
        k.digest for k in alone.kernels
    ]
    assert missing(both, other) == missing(both, first) == []
    want = run(blob(first, alone), alone, first)
    assert want[0] == OK
    assert run(blob(first, alone), both, first) == want
    own = kernel_set(other, "cortex-m4")
    assert run(blob(other, both), both, other) == run(blob(other, own), own, other)


def test_a_model_whose_kernels_are_missing_is_refused_by_name(
    tmp_path: Path, first: Program
) -> None:
    known = kernel_set(first, "cortex-m4")
    (tmp_path / SET_FILE).write_text(set_json(known))
    assert read_set(tmp_path) == known
    asked = Settings(format="blob", kernel_set=tmp_path, check=False)
    with pytest.raises(UnsupportedError, match=r"lacks \d of \d kernels: \w+.*--extend"):
        firmware.build(network(3, pooled=True), BOARD, asked)
    with pytest.raises(InputError, match="is for cortex-m4, and the board has cortex-m0"):
        firmware.build(network(1), "microbit", asked)
    with pytest.raises(InputError, match=r"cannot be read.*--format blob"):
        read_set(tmp_path / "absent")
    (tmp_path / SET_FILE).write_text("{}")
    with pytest.raises(InputError, match="does not describe a kernel set"):
        read_set(tmp_path)


def test_a_set_of_another_version_of_the_library_is_not_extended(first: Program) -> None:
    known = kernel_set(first, "cortex-m4")
    older = replace(known.kernels[0], digest="00" * 8)
    with pytest.raises(InputError, match="of another version of tvm-serenity"):
        extended(replace(known, kernels=(older, *known.kernels[1:])), first)


def test_what_blobs_do_not_support_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--stream-input .*blob|blob .*--stream-input"):
        Settings(format="blob", rows=2, stream_input=True)
    with pytest.raises(InputError, match=r"--sliding 1 .*blob|blob .*--sliding 1"):
        Settings(format="blob", sliding=1)
    with pytest.raises(InputError, match="--kernels"):
        Settings(kernel_set=tmp_path)
    with pytest.raises(InputError, match="--extend"):
        Settings(format="blob", extend=True)
    refused = serenity(
        *("build", "zoo:mobilenet_v2", "--board", BOARD, "--format", "blob"),
        *("--minimise", "ram", "-o", tmp_path / "out"),
    )
    assert refused.returncode == 2
    assert "--minimise ram does not take --format blob" in refused.stderr.replace("\n", " ")


def described_states(made: Program) -> list[tuple[int, int]]:
    """The state and the first value of each input, read from the blob."""
    data = blob(made, kernel_set(made, "cortex-m4"))
    size, begin = 4 * image.EDGE_WORDS, word(data, "edges")
    return [struct.unpack_from("<ii", data, begin + i * size + 20) for i in range(len(made.inputs))]


@needs_host
def test_states_are_inputs_that_a_blob_describes() -> None:
    """The second run takes what the first one made; both are counted by hand."""
    settings = Settings()
    made = make(opened(counting(), settings).module, "net", board(BOARD), settings).program
    assert described_states(made) == [(-1, 0), (1, 0)]
    known = kernel_set(made, "cortex-m4")
    x, state = np.arange(8, dtype=np.int32).reshape(1, 8), np.zeros((1, 8), np.int32)
    for number in (1, 2):
        ((code, outputs),) = loaded(blob(made, known), known, [[x, state]], [32, 32])
        assert code == OK
        shown, state = (np.frombuffer(raw, np.int32).reshape(1, 8) for raw in outputs)
        assert (state == number * x).all()
        assert (shown == 3 * state).all()


BANDS = {
    "bands of one row": Settings(rows=1),
    "bands of three rows": Settings(rows=3, workspace="grow"),
    "rows that overlap": Settings(rows=1, overlap=True),
    "chains in tiles": Settings(rows=1, recompute=1.5),
}


@needs_host
@pytest.mark.parametrize("how", BANDS)
def test_bands_of_rows_are_calls_that_share_steps(how: str) -> None:
    """The same outputs as the unsplit network's, from a smaller arena and more calls."""
    whole = program(1)
    split = program(1, settings=BANDS[how])
    assert not split.straight
    known = kernel_set(split, "cortex-m4")
    data = blob(split, known)
    assert word(data, "call_count") > word(
        blob(whole, kernel_set(whole, "cortex-m4")), "call_count"
    )
    want = run(blob(whole, kernel_set(whole, "cortex-m4")), kernel_set(whole, "cortex-m4"), whole)
    assert run(data, known, split) == want
    assert want[0] == OK
    assert known.arena_bytes < sum(whole.arena_bytes.values())


FAULTS: dict[str, Callable[[Any], Any]] = {
    "two arguments are swapped": lambda call: call._replace(
        places=(call.places[1], call.places[0], *call.places[2:]),
        sizes=(call.sizes[1], call.sizes[0], *call.sizes[2:]),
    ),
    "an argument begins later": lambda call: call._replace(
        places=(call.places[0] + 4, *call.places[1:]), sizes=(call.sizes[0] - 4, *call.sizes[1:])
    ),
}


@needs_host
@pytest.mark.parametrize("rows", ["off", 1])
@pytest.mark.parametrize("fault", FAULTS)
def test_build_finds_a_wrong_blob(
    fault: str, rows: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in the writer of blobs is an error of the build, and nothing is written."""
    monkeypatch.setattr(linked_image, "linkable", lambda _family: False)
    calls = image._Image._calls

    def wrong(self: Any) -> Any:
        found = list(calls(self))
        found[len(found) // 2] = FAULTS[fault](found[len(found) // 2])
        return iter(found)

    monkeypatch.setattr(image._Image, "_calls", wrong)
    with pytest.raises(WrongResultError, match=r"of the blob|refuses the blob"):
        firmware.build(network(4), BOARD, Settings(format="blob", rows=rows))


def test_integers_of_a_layer_are_in_the_blob(first: Program) -> None:
    """A kernel that two layers share is in the set once; the blob holds what differs."""
    known = kernel_set(first, "cortex-m4")
    data = blob(first, known)
    for kernel in first.kernels:
        made, integers = in_set(kernel)
        assert made.digest in known.number
        assert struct.pack(f"<{len(integers)}i", *integers) in data
