"""Builds the source package and its wheels, and tests each in a clean environment.

    python scripts/try_packages.py [PYTHON ...]

PYTHON are interpreters; the default is 3.11, 3.12 and 3.13 if they are on PATH or installed by
pyenv. For each interpreter, the wheel is tested in a new environment (the wheel of 3.12 is also for
later versions). The source package is tested once, without a compiler. A test imports the package,
computes an order with its proof, and compiles and runs a network with TVM. The exit status is 1 if
a test fails.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
NETWORK = "zoo:swiftnet-cell-c"
NO_COMPILER = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}
IMPORTED = """
import importlib.util, json, sys, tvm_serenity
from tvm_serenity.schedule import METHODS
core = importlib.util.find_spec("tvm_serenity._schedule")
print(json.dumps({"file": tvm_serenity.__file__, "core": core.origin if core else "",
                  "tvm": "tvm" in sys.modules, "prefix": sys.prefix}))
"""


def main(asked: Sequence[str]) -> int:
    """Test the packages with each interpreter; return the exit status."""
    pythons = list(asked) or list(_found())
    if not pythons:
        print("no Python interpreter was found; pass the paths of interpreters", file=sys.stderr)
        return 1
    failed = 0
    with tempfile.TemporaryDirectory(prefix="serenity-packages-") as name:
        folder = Path(name)
        source = _source(folder, pythons[0])
        for python in pythons:
            for compiler in (True, False) if python == pythons[0] else (True,):
                start = time.monotonic()
                try:
                    said = _tried(folder, python, source, compiler)
                except (subprocess.CalledProcessError, AssertionError) as error:
                    said = f"FAILED: {getattr(error, 'stderr', None) or error}"
                    failed += 1
                print(f"{_version(python)}: {said} ({time.monotonic() - start:.0f} s)", flush=True)
    missing = [v for v in VERSIONS if v not in map(_version, pythons)]
    if missing and not asked:
        print(f"not tested, because the interpreter was not found: {', '.join(missing)}")
    return int(failed > 0)


def _found() -> Iterator[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        installed = [str(path / "bin" / "python") for path in sorted(root.glob(f"{version}.*"))]
        for python in filter(None, [*installed[-1:], shutil.which(f"python{version}")]):
            if Path(python).exists():
                yield python
                break


def _version(python: str) -> str:
    said = _run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    return said.strip()


def _source(folder: Path, python: str) -> Path:
    """Build the source package in an environment with only the build front end; return its path."""
    front = _environment(folder / "front", python)
    _run(front, "-m", "pip", "install", "--quiet", "build")
    _run(front, "-m", "build", "--sdist", "--outdir", str(folder / "source"), str(ROOT))
    (made,) = (folder / "source").iterdir()
    return made


def _tried(folder: Path, python: str, source: Path, compiler: bool) -> str:
    """Install and test the package in a new environment; return a summary of the test."""
    wheels = folder / ("wheels" if compiler else "pure")
    wheels.mkdir(exist_ok=True)
    clean = _environment(folder / f"{_version(python)}-{compiler}", python)
    wheel = _wheel(clean, wheels, source, compiler)
    _run(clean, "-m", "pip", "install", "--quiet", f"{wheel}[run]")
    _run(clean, "-m", "pip", "check")
    facts = json.loads(_run(clean, "-c", IMPORTED))
    assert facts["file"].startswith(facts["prefix"]), facts
    assert bool(facts["core"]) == compiler, f"the core is {facts['core'] or 'missing'}"
    assert not facts["tvm"], "import tvm_serenity loads TVM"
    command = str(Path(clean).parent / "serenity")
    graph = folder / "graph.txt"
    graph.write_text("graph g\ninput x[64]i8\na RELU: x -> y[64]i8\noutput y\n")
    order = json.loads(_run(command, "schedule", str(graph), "--check", "--json"))
    assert order["schedule"]["outcome"] == "optimal", order
    built = json.loads(_run(command, "compile", NETWORK, "--json", cwd=folder))
    assert built["tuned"]["source"] == "shipped", "the package lacks the measured kernels"
    return f"{wheel.name}: installed, ordered, compiled and run"


def _wheel(clean: str, wheels: Path, source: Path, compiler: bool) -> Path:
    """Return the wheel for this interpreter, built unless an existing wheel is compatible."""
    for wheel in sorted(wheels.glob("*.whl")):
        serves = [clean, "-m", "pip", "install", "--no-deps", "--dry-run", str(wheel)]
        if subprocess.run(serves, capture_output=True).returncode == 0:
            return wheel
    environment = {} if compiler else NO_COMPILER
    pip = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels))
    _run(clean, *pip, str(source), env=environment)
    return max(wheels.glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)


def _environment(folder: Path, python: str) -> str:
    _run(python, "-m", "venv", str(folder))
    return str(folder / "bin" / "python")


def _run(*command: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command outside of the checkout, so that it imports only installed packages."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command,
        env={**clean, **(env or {})},
        cwd=cwd or tempfile.gettempdir(),
        text=True,
        capture_output=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
