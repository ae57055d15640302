#!/bin/sh
# Builds the native searches with ASan and UBSan, and runs their tests:
# scripts/sanitize.sh [pytest arguments]
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
PATH=$(dirname "$python"):$PATH
if ! command -v g++ >/dev/null; then
  echo "sanitize: skipped, because g++ is not installed"
  exit 0
fi
site=$PWD/build/sanitize/site
packages=$("$python" -c 'import sys; print(":".join(p for p in sys.path if p.endswith("-packages")))')
rm -rf "$site" && mkdir -p "$site"
for part in tvm_serenity tests benchmarks; do cp -R "$part" "$site/$part"; done
rm "$site/tvm_serenity/passes" && cp -R passes "$site/tvm_serenity/passes"
find "$site" -name '*.so' -delete
[ ! -d ../shared ] || ln -sfn "$(cd ../shared && pwd)" build/sanitize/shared  # Test data.
PYTHONPATH=$packages cmake -S tvm_serenity/cpp -B build/sanitize/core -DCMAKE_BUILD_TYPE=Debug \
  -DPython_EXECUTABLE="$("$python" -c 'import sys; print(sys.executable)')" \
  -DCMAKE_CXX_FLAGS='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1' \
  -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$site/tvm_serenity" >/dev/null
cmake --build build/sanitize/core --parallel 2 --target _schedule _plan _sparse >/dev/null
# The interpreter is not instrumented, so the sanitizers' runtime is preloaded and leaks of the
# interpreter are ignored. With -S, an editable installation does not put the plain build first.
cd "$site"
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
  SERENITY_SANITIZED=1 ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
  PYTHONPATH=$site:$packages exec "$python" -S -m pytest -q -p no:cacheprovider \
  --dist loadfile --no-loadscope-reorder --tx "$(nproc)*popen//python=$python -S" \
  tests/schedule tests/plan tests/sparse/test_phases.py tests/sparse/test_orders.py \
  -k 'not same_trajectory and not within_the_figures and not shared_files_are_solved' "$@"
