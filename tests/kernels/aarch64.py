"""Kernels compiled for AArch64, run by QEMU's user mode: a small program calls one of them."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
import tvm_ffi.libinfo

Array = npt.NDArray[Any]
EMULATOR, COMPILER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
MISSING = [tool for tool in (EMULATOR, COMPILER) if shutil.which(tool) is None]
LIMIT_S = 120.0
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
"""DLPack's codes by numpy's kinds."""

_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dlpack/dlpack.h>
#include <tvm/ffi/c_api.h>

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
  fprintf(stderr, "%s: ", kind);
  for (int32_t i = 0; i < count; ++i) fputs(parts[i], stderr);
  exit(3);
}
static void *allocate(int type, int id, uint64_t size, int code, int bits) {
  (void)type, (void)id, (void)code, (void)bits;
  return aligned_alloc(128, (size + 127) / 128 * 128);
}
static int release(int type, int id, void *memory) {
  (void)type, (void)id;
  free(memory);
  return 0;
}
extern void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) __attribute__((weak));
extern int (*__TVMBackendFreeWorkspace)(int, int, void *) __attribute__((weak));
typedef int Kernel(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);
@DECLARED@
static Kernel *const kernels[] = {@NAMED@};

static void take(void *into, size_t size) {
  if (fread(into, 1, size, stdin) != size) exit(4);
}

int main(int argc, char **argv) {
  (void)argc;
  if (&__TVMBackendAllocWorkspace) __TVMBackendAllocWorkspace = allocate;
  if (&__TVMBackendFreeWorkspace) __TVMBackendFreeWorkspace = release;
  int32_t head[2];
  take(head, sizeof head); /* how many tensors, how many of these are results */
  DLTensor *tensors = calloc(head[0], sizeof *tensors);
  TVMFFIAny *arguments = calloc(head[0], sizeof *arguments), result = {0};
  int64_t about[12]; /* code, bits, bytes, dimensions, extents */
  for (int i = 0; i < head[0]; ++i) {
    take(about, sizeof about);
    int64_t *shape = malloc(8 * sizeof *shape);
    memcpy(shape, about + 4, 8 * sizeof *shape);
    void *data = allocate(0, 0, about[2] + 1, 0, 0);
    take(data, about[2]);
    tensors[i] = (DLTensor){data, {kDLCPU, 0}, (int32_t)about[3],
                            {(uint8_t)about[0], (uint8_t)about[1], 1}, shape, NULL, 0};
    arguments[i].type_index = kTVMFFIDLTensorPtr;
    arguments[i].v_ptr = &tensors[i];
  }
  if (kernels[atoi(argv[1])](NULL, arguments, head[0], &result)) return 5;
  for (int i = head[0] - head[1]; i < head[0]; ++i) {
    size_t size = tensors[i].dtype.bits / 8;
    for (int d = 0; d < tensors[i].ndim; ++d) size *= tensors[i].shape[d];
    fwrite(tensors[i].data, 1, size, stdout);
  }
  return 0;
}
"""


class Program:
    """Kernels (PrimFuncs) by name in one program for ``target``, linked in ``folder``."""

    def __init__(self, kernels: Mapping[str, Any], target: Any, folder: Path) -> None:
        self.numbers = {name: i for i, name in enumerate(kernels)}
        named = {name: k.with_attr("global_symbol", name) for name, k in kernels.items()}
        self.library = tvm.compile(tvm.IRModule(named), target=target).mod
        self.library.write_to_file(str(folder / "kernels.o"), "o")
        symbols = [f"__tvm_ffi_{name}" for name in kernels]
        text = _MAIN.replace("@DECLARED@", "".join(f"Kernel {s};\n" for s in symbols))
        (folder / "main.c").write_text(text.replace("@NAMED@", ", ".join(symbols)))
        self.path = folder / "program"
        words = [COMPILER, "-static", "-O1", "-o", str(self.path)]
        words += [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
        words += [str(folder / "main.c"), str(folder / "kernels.o"), "-lm"]
        subprocess.run(words, check=True, capture_output=True, timeout=LIMIT_S)

    def run(self, name: str, arguments: Sequence[Array], types: Sequence[Any]) -> list[Array]:
        """Return what a kernel makes of arrays; ``types``: shapes and types of its results."""
        results = [np.full(shape, 77, dtype) for shape, dtype in types]
        given = [np.ascontiguousarray(a) for a in (*arguments, *results)]
        sent = np.asarray([len(given), len(results)], np.int32).tobytes()
        for array in given:
            about = [CODES[array.dtype.kind], 8 * array.dtype.itemsize, array.nbytes, array.ndim]
            extents = [*array.shape, *[0] * (8 - array.ndim)]
            sent += np.asarray([*about, *extents], np.int64).tobytes() + array.tobytes()
        words = [EMULATOR, "-cpu", "max", str(self.path), str(self.numbers[name])]
        ran = subprocess.run(words, input=sent, capture_output=True, timeout=LIMIT_S, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        made, data = [], ran.stdout
        for array in results:
            made.append(np.frombuffer(data[: array.nbytes], array.dtype).reshape(array.shape))
            data = data[array.nbytes :]
        return made
