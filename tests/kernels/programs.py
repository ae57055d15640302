"""Kernels in a small program that calls one of them: for AArch64 under QEMU, or in two threads.

QEMU's user mode runs the first. The second is C, of TVM's own, with ThreadSanitizer: each parallel
loop runs in two threads, which take the halves that TVM's runtime would give them.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
import tvm_ffi.libinfo
from tvm import tirx

from tvm_serenity.kernels.nodes import mapped

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
  for (int left = argc > 2 ? atoi(argv[2]) : 1; left; --left)
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

    compiler: tuple[str, ...] = (COMPILER, "-static", "-O1")
    emulator: tuple[str, ...] = (EMULATOR, "-cpu", "max")

    def __init__(self, kernels: Mapping[str, Any], target: Any, folder: Path) -> None:
        self.numbers = {name: i for i, name in enumerate(kernels)}
        named = {name: k.with_attr("global_symbol", name) for name, k in kernels.items()}
        objects = self.compiled(tvm.IRModule(named), target, folder)
        symbols = [f"__tvm_ffi_{name}" for name in kernels]
        text = _MAIN.replace("@DECLARED@", "".join(f"Kernel {s};\n" for s in symbols))
        (folder / "main.c").write_text(text.replace("@NAMED@", ", ".join(symbols)))
        self.path = folder / "program"
        words = [*self.compiler, "-o", str(self.path)]
        words += [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
        words += [f"-I{Path(tvm.__file__).parent / 'include'}"]
        words += [str(folder / "main.c"), str(objects), "-lm"]
        subprocess.run(words, check=True, capture_output=True, timeout=LIMIT_S)

    def compiled(self, module: tvm.IRModule, target: Any, folder: Path) -> Path:
        """Return a file of compiled kernels."""
        self.library = tvm.compile(module, target=target).mod
        self.library.write_to_file(str(folder / "kernels.o"), "o")
        return folder / "kernels.o"

    def run(self, name: str, arguments: Sequence[Array], types: Sequence[Any]) -> list[Array]:
        """Return what a kernel makes of arrays; ``types``: shapes and types of its results."""
        return self.ran([str(self.path), str(self.numbers[name])], arguments, types)[0]

    def ran(
        self, program: Sequence[str], arguments: Sequence[Array], types: Sequence[Any]
    ) -> tuple[list[Array], str]:
        """Return a kernel's results and what the program or its emulator said beside them."""
        results = [np.full(shape, 77, dtype) for shape, dtype in types]
        given = [np.ascontiguousarray(a) for a in (*arguments, *results)]
        sent = np.asarray([len(given), len(results)], np.int32).tobytes()
        for array in given:
            about = [CODES[array.dtype.kind], 8 * array.dtype.itemsize, array.nbytes, array.ndim]
            extents = [*array.shape, *[0] * (8 - array.ndim)]
            sent += np.asarray([*about, *extents], np.int64).tobytes() + array.tobytes()
        words = [*self.emulator, *program]
        ran = subprocess.run(words, input=sent, capture_output=True, timeout=LIMIT_S, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        made, data = [], ran.stdout
        for array in results:
            made.append(np.frombuffer(data[: array.nbytes], array.dtype).reshape(array.shape))
            data = data[array.nbytes :]
        return made, ran.stderr.decode()


_HEADER = r"for \(int32_t steps_in_threads\w* = 0; (steps_in_threads\w*) < (\d+); \+\+\1\) {"
_LAUNCH = r"""
#include <pthread.h>
typedef struct { void (*run)(int, int); int first, last; } Half;
static void *half(void *given) {
  Half *part = given;
  part->run(part->first, part->last);
  return NULL;
}
static void launch(void (*run)(int, int), int steps) {
  int middle = (steps + 1) / 2;
  Half halves[2] = {{run, 0, middle}, {run, middle, steps}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, half, &halves[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}
"""


class Sanitized(Program):
    """A program as C, its parallel loops in two threads, with ThreadSanitizer."""

    compiler = ("gcc", "-O1", "-g", "-fsanitize=thread", "-pthread", "-w")
    emulator = ("setarch", os.uname().machine, "-R")
    loops = 0

    def compiled(self, module: tvm.IRModule, target: Any, folder: Path) -> Path:
        """Return a file of C, vectors as loops."""
        named = {v: f.with_body(_named(f.body)) for v, f in module.functions.items()}
        with tvm.transform.PassContext(config={"tirx.disable_vectorize": True}):
            text = tvm.compile(tvm.IRModule(named), target=target).mod.inspect_source()
        while found := re.search(_HEADER, text):
            text = _in_threads(text, found)
            self.loops += 1
        (folder / "kernels.c").write_text(_LAUNCH + text)
        return folder / "kernels.c"


def _named(body: tirx.Stmt) -> Any:
    """A kernel's body whose parallel loops C shows by their names (and writes as serial ones)."""

    def change(loop: tirx.For) -> Any:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        var = tirx.Var("steps_in_threads", loop.loop_var.ty)
        body = mapped(loop.body, tirx.Var, lambda v: var if v.same_as(loop.loop_var) else v)
        return tirx.For(var, loop.min, loop.extent, loop.kind, body)

    return mapped(body, tirx.For, change)


def _in_threads(text: str, found: re.Match[str]) -> str:
    """A source whose loop is a function of its first and last step, launched in two threads."""
    var, steps = found.groups()
    end, depth = found.end(), 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    body = text[found.end() : end]
    made = (
        f"{{ void run(int first, int last) {{ for (int32_t {var} = first; {var} < last; ++{var}) {{"
    )
    return f"{text[: found.start()]}{made}{body} }} launch(run, {steps}); }}{text[end:]}"


def sanitizer_missing() -> str:
    """Return what there is not to sanitise threads with, empty where all is there."""
    absent = [tool for tool in ("gcc", "setarch") if shutil.which(tool) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    found = subprocess.run(
        ["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=False
    )
    return "" if Path(found.stdout.strip()).is_absolute() else "gcc has no ThreadSanitizer"
