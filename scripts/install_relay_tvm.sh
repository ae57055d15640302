#!/usr/bin/env bash
# Installs a TVM with Relay (0.17, LLVM 10, CPU) in a new virtual environment; Linux x86-64 only.
#
#   scripts/install_relay_tvm.sh VENV [PYTHON]
#
# It is not needed if a TVM up to 0.19 is installed (docs/relay.md).
# 1. Creates VENV with PYTHON (default python3) if it does not exist, and installs TVM's imports.
# 2. Downloads the wheel bitblas 0.1.0.post1 (MIT; 81.7 MB), which contains TVM 0.17 (Apache-2.0),
#    checks its SHA-256 and extracts the package tvm and libtvm.so. bitblas is not installed.
# 3. libtvm.so links against three CUDA libraries that a CPU never calls: gcc builds empty ones.
# 4. Imports TVM, then builds and runs a module as a check.
# If TVM is already installed in VENV, the script does nothing. After an interrupt, run it again.
# It needs gcc, nm and 284 MB.
set -euo pipefail

wheel=bitblas==0.1.0.post1
sha256=5beaf38899671dc35da63ff31b8d7bea4d98a2c929a102fe40d2f3004cec391b
requirements=('numpy<2' attrs cloudpickle decorator ml_dtypes packaging psutil
              typing_extensions 'setuptools<81')

fail() { echo "install_relay_tvm: $*" >&2; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || fail "usage: install_relay_tvm.sh VENV [PYTHON]"
[ "$(uname -sm)" = "Linux x86_64" ] || fail "the wheel is for Linux x86_64, this is $(uname -sm)"
command -v gcc >/dev/null || fail "gcc is needed for the empty CUDA libraries"
command -v nm >/dev/null || fail "nm (binutils) is needed for the empty CUDA libraries"

venv=$1
base=${2:-python3}
python=$venv/bin/python
mark=$venv/.relay-tvm
if [ -e "$mark" ] && [ "$(cat "$mark")" = "$sha256" ] && "$python" -c 'import tvm.relay' 2>/dev/null
then
    echo "install_relay_tvm: $venv has it already"
    exit 0
fi

"$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "tvm-serenity needs Python 3.11 or later, $base is $("$base" -V)"
[ -x "$python" ] || "$base" -m venv "$venv"
echo "install_relay_tvm: TVM 0.17 with Relay into $venv (about a minute)"
"$python" -m pip install --quiet --disable-pip-version-check "${requirements[@]}"
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
if [ -d "$site/tvm" ] && [ ! -d "$site/tvm/_without_cuda" ]; then
    fail "$venv has a TVM of its own ($site/tvm): choose another VENV"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$work" "$wheel"
found=("$work"/bitblas-*.whl)
echo "$sha256  ${found[0]}" | sha256sum --check --quiet || fail "the wheel is not the expected one"

rm -rf "$site/tvm" "$mark"
mkdir -p "$site/tvm/_without_cuda"
"$python" - "${found[0]}" "$site" <<'PYTHON'
"""Take package and library out of the wheel; libtvm.so is found beside the package."""
import pathlib
import shutil
import sys
import zipfile

wheel, site = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
PREFIX = "bitblas/3rdparty/tvm/"
MOVED = {"build/libtvm.so": "tvm/libtvm.so", "LICENSE": "tvm/LICENSE", "NOTICE": "tvm/NOTICE"}
for name in wheel.namelist():
    inner = name.removeprefix(PREFIX)
    if inner == name or name.endswith("/"):
        continue
    to = inner.removeprefix("python/") if inner.startswith("python/tvm/") else MOVED.get(inner)
    if to is not None:
        (site / to).parent.mkdir(parents=True, exist_ok=True)
        with wheel.open(name) as source, open(site / to, "wb") as target:
            shutil.copyfileobj(source, target)
PYTHON

without_cuda() { # SONAME PATTERN [versioned]: a library with the symbols TVM asks it for
    nm -D --undefined-only "$site/tvm/libtvm.so" | awk '{print $2}' | sed 's/@.*//' |
        grep -E "$2" | sed 's/.*/int &(void) { return 999; }/' >"$work/empty.c"
    printf '%s { global: *; };\n' "$1" >"$work/version.map"
    gcc -w -O1 -fPIC -shared "-Wl,-soname,$1" ${3:+"-Wl,--version-script=$work/version.map"} \
        -o "$site/tvm/_without_cuda/$1" "$work/empty.c"
}
without_cuda libcuda.so.1 '^cu[A-Z]'
without_cuda libcudart.so.12 '^cuda[A-Z]' versioned
without_cuda libnvrtc.so.12 '^nvrtc' versioned
cat >"$site/tvm/_without_cuda/__init__.py" <<'PYTHON'
"""Loaded before libtvm.so: the CUDA libraries it links against, empty; no schedule downloads."""
import ctypes
import os
import pathlib

os.environ.setdefault("TOPHUB_LOCATION", "NONE")
LIBRARIES = [ctypes.CDLL(str(f)) for f in sorted(pathlib.Path(__file__).parent.glob("lib*.so.*"))]
PYTHON
sed -i '0,/^from \._ffi\.base/s//from . import _without_cuda\n&/' "$site/tvm/__init__.py"

"$python" - <<'PYTHON'
import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

x = relay.var("x", shape=(4,))
lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm")
run = graph_executor.GraphModule(lib["default"](tvm.cpu()))
run.run(x=np.array([-1, 2, -3, 4], "float32"))
assert run.get_output(0).numpy().tolist() == [0, 2, 0, 4]
print("install_relay_tvm: TVM", tvm.__version__, "LLVM", tvm.support.libinfo()["LLVM_VERSION"])
PYTHON
echo "$sha256" >"$mark"
