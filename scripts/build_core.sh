#!/bin/sh
# Builds the native searches in the checkout: scripts/build_core.sh [order|place|offchip|sparse]
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
build=build/dev
cmake -S tvm_serenity/cpp -B "$build" -DPython_EXECUTABLE="$("$python" -c 'import sys; print(sys.executable)')" \
  -DCMAKE_BUILD_TYPE="${BUILD_TYPE:-Release}" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$PWD/tvm_serenity" >/dev/null
cmake --build "$build" ${1:+--target "_$1"}
