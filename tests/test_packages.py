"""The source package, and what is installed of it where there is no compiler.

``scripts/try_packages.py`` builds the wheels as well, for each interpreter at hand.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("scikit_build_core")

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"tvm_serenity": "tvm_serenity", "passes": "tvm_serenity/passes",
           "targets": "tvm_serenity/targets"}  # fmt: skip
BUILD = """
import sys
sys.path.insert(0, "scripts")
import serenity_build
print(getattr(serenity_build, sys.argv[1])({!r}))
"""


def run(*command: str, cwd: Path, **more: str) -> str:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | more
    return subprocess.run(
        command, cwd=cwd, env=env, check=True, capture_output=True, text=True
    ).stdout


def built(what: str, folder: Path, source: Path, **more: str) -> Path:
    """What the build backend makes of the sources in ``source``."""
    folder.mkdir()
    run(sys.executable, "-c", BUILD.format(str(folder)), what, cwd=source, **more)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("build_sdist", tmp_path_factory.mktemp("packages") / "source", ROOT)


@pytest.fixture(scope="module")
def installed(source: Path) -> Path:
    """Where the wheel lies open that is made of ``source`` without a compiler."""
    with tarfile.open(source) as archive:
        archive.extractall(source.parent, filter="data")
    unpacked = source.parent / source.name.removesuffix(".tar.gz")
    missing = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}
    wheel = built("build_wheel", source.parent.parent / "wheel", unpacked, **missing)
    assert wheel.name.endswith("-py3-none-any.whl")
    folder = source.parent.parent / "installed"
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def test_the_source_package_has_the_sources_alone(source: Path) -> None:
    with tarfile.open(source) as archive:
        members = archive.getmembers()
    names = [member.name.partition("/")[2] for member in members]
    assert not [m.name for m in members if m.issym() or m.islnk()]
    assert not [name for name in names if name.endswith((".so", ".pyc", ".tflite", ".onnx"))]
    assert not [name for name in names if name.startswith(("build/", "dist/", ".venv"))]
    assert "tvm_serenity/cpp/CMakeLists.txt" in names
    assert "LICENSE" in names


def test_all_that_the_package_needs_is_installed(installed: Path) -> None:
    for here, there in FOLDERS.items():
        files = [
            p for p in (ROOT / here).rglob("*") if p.is_file() and "__pycache__" not in p.parts
        ]
        wanted = {p.relative_to(ROOT / here) for p in files if p.parts[-2] != "cpp"}
        wanted = {p for p in wanted if p.parts[0] not in ("cpp", "passes", "targets")}
        found = {p.relative_to(installed / there) for p in (installed / there).rglob("*")}
        assert wanted
        assert wanted <= found, wanted - found
    assert not (installed / "tvm_serenity" / "cpp").exists()


GRAPH = """graph branches
input x[1,8,8,4]f32
a CONV: x -> y[1,8,8,16]f32
b CONV: x -> z[1,8,8,16]f32
c CONV: y -> v[1,8,8,2]f32
d CONV: z -> w[1,8,8,2]f32
e CONCAT: v w -> o[1,8,8,4]f32
output o
"""


def test_it_orders_without_a_compiler_as_it_does_with_one(installed: Path, tmp_path: Path) -> None:
    """The same order, and a line on standard error that says why it is slow."""
    (tmp_path / "graph.txt").write_text(GRAPH)
    ask = ("schedule", "graph.txt", "--check", "--json")
    native = json.loads(run(sys.executable, "-m", "tvm_serenity.cli", *ask, cwd=tmp_path))
    # The folder of the packages installed here is on the path as such: what announces the
    # editable installation in it is then not read.
    paths = os.pathsep.join([str(installed), sysconfig.get_paths()["purelib"]])
    start = "import runpy, sys, tvm_serenity; print(tvm_serenity.__file__, file=sys.stderr); "
    start += "runpy.run_module('tvm_serenity.cli', run_name='__main__', alter_sys=True)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", start, *ask],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr.startswith(str(installed))
    assert "the native core is not installed" in done.stderr
    pure = json.loads(done.stdout)
    for answer in (native, pure):
        answer["schedule"] = {
            key: answer["schedule"][key]
            for key in ("peak_bytes", "outcome", "order", "arena_bytes")
        }
    assert pure == native
    assert pure["schedule"]["outcome"] == "optimal"
    assert pure["schedule"]["peak_bytes"] < pure["given"]["peak_bytes"]


def test_no_version_is_shut_out_but_one() -> None:
    """A limit from above makes the package refuse to install beside newer ones."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    limits = {"dependencies": project["dependencies"], **project["optional-dependencies"]}
    limited = {
        (extra, re.split(r"[<>=!;\[ ]", item)[0])
        for extra, items in limits.items()
        for item in items
        if re.search(r"<|==|~=", item.partition(";")[0])
    }
    # TVM's interface differs from release to release; what the tests compare with is theirs.
    assert limited - {("test", "torch")} == {
        ("run", "apache-tvm"),
        ("tune", "apache-tvm-ffi"),
    }


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout")
def test_a_checkout_without_symbolic_links_is_installed_editable(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    run("git", "clone", "-q", "-c", "core.symlinks=false", str(ROOT), str(checkout), cwd=tmp_path)
    assert (checkout / "tvm_serenity" / "targets").is_file()
    missing = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}
    wheel = built("build_editable", tmp_path / "wheel", checkout, **missing)
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    start = "import site, sys; site.addsitedir(sys.argv[1]); sys.path.append(sys.argv[2])\n"
    start += "import tvm_serenity.passes, tvm_serenity.targets\n"
    start += "from tvm_serenity.boards import names\n"
    start += "print(tvm_serenity.passes.__file__, 'nucleo-l4r5zi' in names())"
    purelib = sysconfig.get_paths()["purelib"]
    told = [sys.executable, "-S", "-c", start, str(tmp_path / "site"), purelib]
    said = run(*told, cwd=tmp_path).split()
    assert said == [str(checkout / "tvm_serenity" / "passes" / "__init__.py"), "True"]
    assert run("git", "status", "--porcelain", "tvm_serenity", cwd=checkout) == ""


def test_no_extra_but_those_of_pytorch_brings_cuda() -> None:
    """On Linux PyPI's ``torch`` brings CUDA: no user gets it who did not ask for PyTorch."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = extras["optional-dependencies"]

    def brought(items: list[str]) -> set[str]:
        found = set()
        for item in items:
            inner = re.fullmatch(r"tvm-serenity\[(.*)\]", item)
            if inner is None:
                found.add(re.split(r"[<>=!;\[ ]", item)[0])
            else:
                found |= set().union(*(brought(named[name]) for name in inner[1].split(",")))
        return found

    heavy = {"torch", "torchao", "executorch"}
    asking = {name for name, items in named.items() if brought(items) & heavy}
    assert asking == {"torch", "executorch", "test"}
    base = brought(extras["dependencies"])
    assert {"tflite", "onnx"} <= base
    assert not base & {*heavy, "apache-tvm", "onnxruntime", "ai-edge-litert"}
    assert {"apache-tvm", "unicorn", "ai-edge-litert"} <= brought(named["firmware"])
