"""Calls MKL's inspector-executor routines for sparse matrices through ctypes, on one thread.

https://www.intel.com/content/www/us/en/docs/onemkl/developer-reference-c (Inspector-Executor
Sparse BLAS Routines: mkl_sparse_s_create_csr, mkl_sparse_set_mm_hint, mkl_sparse_optimize,
mkl_sparse_s_mm).
"""

import ctypes
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.errors import MissingPartError, SerenityError

if TYPE_CHECKING:
    import scipy.sparse

ROW_MAJOR, ZERO_BASED, NO_TRANSPOSE, GENERAL, FULL, NON_UNIT = 101, 0, 10, 20, 42, 50
AGGRESSIVE, SEQUENTIAL, LP64 = 81, 1, 0
CALLS = 1000
"""The number of products that MKL is told to optimise for."""

Array = NDArray[np.float32]


class _Description(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


GENERAL_MATRIX = _Description(GENERAL, FULL, NON_UNIT)


@cache
def library() -> Any:
    """Load and return MKL, set to one thread; raises :class:`MissingPartError` without MKL."""
    libraries = _libraries()
    if not libraries:
        raise MissingPartError("MKL is not installed: pip install 'tvm-serenity[sparse]'")
    os.environ.setdefault("MKL_NUM_THREADS", "1")
    try:
        mkl = ctypes.CDLL(str(libraries[0]))
    except OSError as error:
        raise MissingPartError(f"MKL cannot be loaded: {error}") from error
    mkl.MKL_Set_Interface_Layer(LP64)
    mkl.MKL_Set_Threading_Layer(SEQUENTIAL)
    mkl.MKL_Set_Num_Threads(1)
    return mkl


def _libraries() -> list[Path]:
    """Return the paths of the library in the pip package and in conda's folder."""
    with suppress(PackageNotFoundError):
        listed = [Path(str(file.locate())) for file in files("mkl") or () if "mkl_rt" in file.name]
        if listed := [path for path in listed if path.exists()]:
            return sorted(listed)
    places = [Path(sys.prefix) / "lib", Path(sys.prefix) / "Library" / "bin"]
    return [path for place in places for path in sorted(place.glob("*mkl_rt*"))]


class Csr:
    """A sparse matrix (rows, columns) in MKL, optimised for products with ``batch`` columns."""

    def __init__(self, matrix: "scipy.sparse.csr_matrix", batch: int) -> None:
        mkl = library()
        self.rows, self.columns = matrix.shape
        self.batch = batch
        self._kept = [
            np.ascontiguousarray(matrix.indptr, dtype=np.int32),
            np.ascontiguousarray(matrix.indices, dtype=np.int32),
            np.ascontiguousarray(matrix.data, dtype=np.float32),
        ]
        begin, index, data = (ctypes.c_void_p(array.ctypes.data) for array in self._kept)
        end = ctypes.c_void_p(self._kept[0].ctypes.data + 4)
        self._handle = ctypes.c_void_p()
        _check(
            mkl.mkl_sparse_s_create_csr(
                ctypes.byref(self._handle),
                ZERO_BASED,
                self.rows,
                self.columns,
                begin,
                end,
                index,
                data,
            )
        )
        _check(
            mkl.mkl_sparse_set_mm_hint(
                self._handle, NO_TRANSPOSE, GENERAL_MATRIX, ROW_MAJOR, batch, CALLS
            )
        )
        _check(mkl.mkl_sparse_set_memory_hint(self._handle, AGGRESSIVE))
        _check(mkl.mkl_sparse_optimize(self._handle))

    def product(self, x: Array, out: Array) -> None:
        """Write the product with ``x`` (columns, batch) to ``out`` (rows, batch)."""
        _check(
            library().mkl_sparse_s_mm(
                NO_TRANSPOSE,
                ctypes.c_float(1.0),
                self._handle,
                GENERAL_MATRIX,
                ROW_MAJOR,
                ctypes.c_void_p(x.ctypes.data),
                self.batch,
                self.batch,
                ctypes.c_float(0.0),
                ctypes.c_void_p(out.ctypes.data),
                self.batch,
            )
        )

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            library().mkl_sparse_destroy(self._handle)


def gemm(a: Array, x: Array, out: Array) -> None:
    """Write the dense product ``a x`` to ``out``, all row-major."""
    rows, inner = a.shape
    columns = x.shape[1]
    library().cblas_sgemm(
        ROW_MAJOR,
        111,
        111,
        rows,
        columns,
        inner,
        ctypes.c_float(1.0),
        ctypes.c_void_p(a.ctypes.data),
        inner,
        ctypes.c_void_p(x.ctypes.data),
        columns,
        ctypes.c_float(0.0),
        ctypes.c_void_p(out.ctypes.data),
        columns,
    )


def _check(status: int) -> None:
    if status:
        raise SerenityError(f"a call of MKL's sparse BLAS failed with status {status}")
