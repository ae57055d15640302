"""ONNX models whose data is in other files: sized without it, built from it, never led astray."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.run import serenity
from tests.llvm import TARGET
from tvm_serenity.errors import InputError
from tvm_serenity.frontends import left_beside, load, save

onnx = pytest.importorskip("onnx")
pytest.importorskip("tvm")
from tvm_serenity.frontends.relax import to_relax  # noqa: E402

helper = onnx.helper
F32 = onnx.TensorProto.FLOAT
WEIGHT = np.arange(4, dtype=np.float32) + 1


def external(name: str, entries: dict[str, Any], dims: tuple[int, ...] = (4,)) -> Any:
    tensor = onnx.TensorProto(name=name, data_type=F32, dims=dims, data_location=1)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def model(path: Path, entries: dict[str, Any], where: str = "initializer") -> Path:
    """The file of x * w + w on four floats, with ``w`` stored as ``entries`` say."""
    path.parent.mkdir(parents=True, exist_ok=True)
    x, y = (helper.make_tensor_value_info(name, F32, [1, 4]) for name in "xy")
    nodes = [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    tensor = external("w", entries)
    if where == "initializer":
        graph.initializer.append(tensor)
    elif where == "constant":
        made = helper.make_node("Constant", [], ["w"], value=tensor)
        graph.node.insert(0, made)
    elif where == "sparse":
        sparse = onnx.SparseTensorProto(values=tensor, dims=[4])
        sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.arange(4), "i"))
        graph.sparse_initializer.append(sparse)
    elif where == "subgraph":
        inner = helper.make_node("Constant", [], ["v"], value=tensor)
        out = helper.make_tensor_value_info("v", F32, [4])
        branch = helper.make_graph([inner], "b", [], [out])
        flag = helper.make_tensor("flag", onnx.TensorProto.BOOL, [], [True])
        graph.initializer.append(flag)
        graph.node.insert(
            0, helper.make_node("If", ["flag"], ["w"], then_branch=branch, else_branch=branch)
        )
    opset = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opset).SerializeToString())
    return path


def weights(path: Path, before: int = 0) -> None:
    path.write_bytes(bytes(before) + WEIGHT.tobytes())


def run(path: Path) -> Any:
    import tvm
    from tvm import relax

    machine = relax.VirtualMachine(tvm.compile(to_relax(path), TARGET), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(np.ones((1, 4), np.float32))).numpy()


@pytest.mark.parametrize("where", ["initializer", "constant", "sparse"])
def test_data_beside_the_file(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model(tmp_path / "a" / "m.onnx", {"location": "w.bin", "offset": 8, "length": 16}, where)
    assert load(path).graph.ops  # needs no data
    with pytest.raises(InputError, match=r"'w': its data cannot be read: 'w\.bin': No such file"):
        to_relax(path)
    weights(tmp_path / "w.bin", 8)
    monkeypatch.chdir(tmp_path)  # the working folder is no place to look
    with pytest.raises(InputError, match="No such file"):
        to_relax(path)
    weights(tmp_path / "a" / "w.bin", 8)
    np.testing.assert_array_equal(run(path), [2 * WEIGHT])


@pytest.mark.parametrize("where", ["initializer", "constant", "sparse", "subgraph"])
@pytest.mark.parametrize(
    "location",
    ["../w.bin", "/etc/passwd", "sub/../../w.bin", "..", "", "C:\\w.bin", "..\\w.bin", "a\0b"],
)
def test_locations_outside_are_refused_by_every_command(
    tmp_path: Path, where: str, location: str
) -> None:
    weights(tmp_path / "w.bin")
    path = model(tmp_path / "a" / "m.onnx", {"location": location}, where)
    for read in (load, to_relax):
        with pytest.raises(InputError, match=r"'w': its data is (in|external)") as error:
            read(path)
        assert "\n" not in str(error.value)


def test_links_may_not_lead_out(tmp_path: Path) -> None:
    weights(tmp_path / "w.bin")
    path = model(tmp_path / "a" / "m.onnx", {"location": "sub/w.bin"})
    (tmp_path / "a" / "real").mkdir()
    weights(tmp_path / "a" / "real" / "w.bin")
    (tmp_path / "a" / "sub").symlink_to(tmp_path)
    with pytest.raises(
        InputError, match=r"'w': 'sub/w\.bin' is a link to outside of the model's folder"
    ):
        to_relax(path)
    (tmp_path / "a" / "sub").unlink()
    (tmp_path / "a" / "sub").symlink_to("real")  # inside: fine
    np.testing.assert_array_equal(run(path), [2 * WEIGHT])
    (tmp_path / "a" / "sub").unlink()
    (tmp_path / "a" / "sub").symlink_to("sub")
    with pytest.raises(InputError, match="'w': its data cannot be read"):
        to_relax(path)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"offset": 4}, "bytes 4 to 20 of 'w.bin', which has 16"),
        ({"offset": 10**18}, "which has 16"),
        ({"offset": -1}, "offset '-1' of its external data is not a number"),
        ({"length": "many"}, "length 'many' of its external data is not a number"),
        ({"length": 8}, "8 bytes in 'w.bin', but its shape takes 16"),
        ({"length": 2**62}, "but its shape takes 16"),
    ],
)
def test_offset_and_length_are_checked(tmp_path: Path, entries: Any, said: str) -> None:
    weights(tmp_path / "w.bin")
    path = model(tmp_path / "m.onnx", {"location": "w.bin", **entries})
    with pytest.raises(InputError, match=f"tensor 'w': .*{said}"):
        to_relax(path)


def test_only_regular_files_and_no_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model(tmp_path / "m.onnx", {"location": "w.bin"})
    os.mkfifo(tmp_path / "w.bin")
    with pytest.raises(InputError, match=r"'w': 'w\.bin' is not a regular file"):
        to_relax(path)
    (tmp_path / "w.bin").unlink()
    (tmp_path / "w.bin").mkdir()
    with pytest.raises(InputError, match=r"'w': 'w\.bin' is not a regular file"):
        to_relax(path)
    (tmp_path / "w.bin").rmdir()
    weights(tmp_path / "w.bin")
    monkeypatch.setattr("tvm_serenity.frontends._onnx_external.MAX_TOTAL_BYTES", 15)
    with pytest.raises(InputError, match="16 bytes of external data; at most 15"):
        to_relax(path)


def test_a_reordered_file_keeps_its_references(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", {"location": "w.bin"})
    weights(tmp_path / "w.bin")
    opened = load(path)
    save(opened, [0, 1], tmp_path / "again.onnx")
    np.testing.assert_array_equal(run(tmp_path / "again.onnx"), [2 * WEIGHT])
    assert left_beside(opened, tmp_path / "again.onnx") == ()
    with pytest.raises(InputError, match=r"w\.bin: this is a data file of .*m\.onnx"):
        save(opened, [0, 1], tmp_path / "w.bin")
    (tmp_path / "other").mkdir()
    done = serenity("schedule", str(path), "-o", str(tmp_path / "other" / "m.onnx"))
    assert done.returncode == 0
    assert "the weights are in another file: copy" in done.stdout
    assert "other/w.bin" in done.stdout.replace("\n", "")


def test_shapes_stored_outside_are_read_where_they_are(tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", F32, [2, 6])
    y = helper.make_tensor_value_info("y", F32, None)
    shape = external("w", {"location": "w.bin"}, (2,))
    shape.data_type = onnx.TensorProto.INT64
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "w"], ["y"])], "g", [x], [y], [shape]
    )
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    with pytest.raises(InputError, match="'y'"):
        load(tmp_path / "m.onnx")
    (tmp_path / "w.bin").write_bytes(np.array([3, 4], np.int64).tobytes())
    assert load(tmp_path / "m.onnx").graph.tensors[-1].shape == (3, 4)
