"""Names, parameters and what a wrong spec is answered."""

import subprocess
import sys
from pathlib import Path

import pytest

from tvm_serenity import zoo
from tvm_serenity.errors import InputError


def test_listing_imports_neither_tvm_nor_numpy_nor_networkx() -> None:
    code = (
        "import sys\nfrom tvm_serenity import zoo\n"
        "print(len(zoo.NAMES), {'tvm', 'numpy', 'networkx'} & set(sys.modules))"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert out.stdout.split() == [str(len(zoo.NAMES)), "set()"]


def test_every_entry_explains_itself() -> None:
    for name, entry in zoo.NAMES.items():
        assert entry.name == name
        assert entry.description
        assert entry.source
        assert [p.name for p in entry.params][-3:] == ["layout", "dtype", "seed"]
        for param in entry.params:
            assert param.help
            if param.default is not None:
                assert param.parse(str(param.default)) == param.default


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("resnet", "the zoo has no network 'resnet'; choose one of swiftnet, swiftnet-cell-a"),
        ("liberis-lane?n=3", "liberis-lane has no parameter n; choose among layout, dtype, seed"),
        ("swiftnet?dtype=int8", "dtype=int8: dtype must be float32"),
        ("swiftnet?layout=CHWN", "layout=CHWN: layout must be NCHW or NHWC"),
        ("swiftnet?seed=-1", "seed=-1: seed must be an integer from 0 to 4294967295"),
        ("swiftnet?split=yes", "split=yes: split must be an integer from 0 to 1"),
        (
            "swiftnet?split",
            "the zoo parameter 'split' is not valid; write each parameter once",
        ),
        (
            "swiftnet?seed=1&seed=2",
            "the zoo parameter 'seed=2' is not valid; write each parameter once, as name=value",
        ),
        ("randwire?n=10001", "n=10001: n must be an integer from 2 to 10000"),
        ("randwire?channels=5000", "channels=5000: channels must be an integer from 2 to 4096"),
        ("randwire?p=nan", "p=nan: p must be a number from 0 to 1"),
        ("randwire?model=tree", "model=tree: model must be ws or er or ba"),
        ("randwire?k=32", "k=32: a ws graph of 32 nodes needs k from 2 to n - 1"),
        ("randwire?model=ba&m=32", "m=32: a ba graph of 32 nodes needs m from 1 to n - 1"),
        (
            "randwire?model=er&n=9999&p=1",
            "the random graph would have about 49985001 edges",
        ),
        (
            "randwire?model=er&p=0",
            "100 random er graphs were not connected; raise k or p, or lower n",
        ),
        ("swiftnet-cell-a?size=1", "size=1: size must be an integer from 2 to 4096"),
        ("darts-imagenet?channels=4096", "the network has more than 134217728 weights"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_line(
    spec: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError) as refusal:
        zoo.build(spec)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
    assert capfd.readouterr() == ("", "")
