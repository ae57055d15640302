"""``serenity build --format mlf`` as TVM's own reader of Model Library Format takes it."""

from pathlib import Path

import pytest

relay = pytest.importorskip("tvm.relay", reason="needs a TVM with Relay: make relay-test")

import numpy as np  # noqa: E402
from tvm.driver.tvmc.model import TVMCPackage  # noqa: E402

from tvm_serenity.boards import board  # noqa: E402
from tvm_serenity.firmware.emit.project import Layout  # noqa: E402
from tvm_serenity.firmware.formats import mlf  # noqa: E402
from tvm_serenity.firmware.program import (  # noqa: E402
    Array,
    Bands,
    Const,
    Constant,
    Data,
    Kernel,
    Param,
    Program,
    Step,
    Tensor,
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # TVM's open tar
def test_tvm_reads_the_archive_and_its_parameters(tmp_path: Path) -> None:
    arrays: dict[str, Array] = {
        "w": np.arange(12, dtype=np.int8).reshape(3, 4),
        "scale": np.array(0.5, np.float32),
        "table": np.array([True, False]),
    }
    params = (Param("x", "int8", True), Param("w", "int8", True), Param("y", "int8", False))
    program = Program(
        "net",
        (Kernel("copy", params, "    y[0] = x[0];"),),
        tuple(Constant(name, array) for name, array in arrays.items()),
        (Tensor("x", (4,), "int8"), Tensor("y", (4,), "int8")),
        (Bands.unsplit("sram", 0), Bands.unsplit("sram", 16)),
        (Step(("copy",), (Data(0), Const(0), Data(1)), (1,)),),
        (0,),
        (1,),
        {"sram": 32},
    )
    made = mlf.written(program, Layout(board("mps2-an386")))
    (tmp_path / "net.tar").write_bytes(made["net.tar"])
    package = TVMCPackage(str(tmp_path / "net.tar"))
    assert (package.type, package.executor_type) == ("mlf", "aot")
    read = relay.load_param_dict(bytes(package.params))
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        assert read[name].numpy().dtype == array.dtype
        np.testing.assert_array_equal(read[name].numpy(), array)
