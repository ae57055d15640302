"""The TIR kernel: groups of connections, sums in vector registers, batch in tiles."""

from functools import cache
from typing import Any

import tvm
from tvm.script import tirx as T  # noqa: N812

from tvm_serenity.sparse.execute.plan import FRESH, FROM_INPUTS, OUTPUT, RELU


def lanes() -> int:
    """Return the floats of this machine's vector registers."""
    features = tvm.get_global_func("target.llvm_cpu_has_feature", allow_missing=True)
    target = host()
    for feature, width in (("avx512f", 16), ("avx2", 8)):
        if features is not None and features(feature, target):
            return width
    return 4


@cache
def host() -> Any:
    """Return the target for this machine."""
    cpu = tvm.get_global_func("target.llvm_get_system_cpu", allow_missing=True)
    return tvm.target.Target({"kind": "llvm", **({"mcpu": str(cpu())} if cpu is not None else {})})


@cache
def kernel(batch: int, tile: int, width: int, parallel: bool) -> Any:
    """Return the compiled kernel for ``batch`` columns, ``tile`` at a time, ``width`` a vector.

    Arguments: x (inputs, batch), values (batch / tile, slots, tile), out (outputs, batch), then the
    arrays of :class:`Groups`: first, target, flags, place, source, weight, bias;
    how many inputs are staged.
    """
    module = tvm.IRModule({"sparse": _body(batch, tile, width, parallel)})
    return tvm.compile(module, target=host())["sparse"]


def _body(batch: int, tile: int, width: int, parallel: bool) -> Any:
    vectors, tiles = tile // width, batch // tile
    fresh, from_inputs, relu, output = FRESH, FROM_INPUTS, RELU, OUTPUT
    over = T.parallel if parallel else T.serial

    @T.prim_func
    def sparse(
        x_handle: T.handle,
        values_handle: T.handle,
        out_handle: T.handle,
        first_handle: T.handle,
        target_handle: T.handle,
        flags_handle: T.handle,
        place_handle: T.handle,
        source_handle: T.handle,
        weight_handle: T.handle,
        bias_handle: T.handle,
        staged: T.int64,
    ) -> None:
        T.func_attr({"global_symbol": "sparse", "tirx.noalias": True})
        inputs, slots, outputs = T.int64(), T.int64(), T.int64()
        count, edges = T.int64(), T.int64()
        x = T.match_buffer(x_handle, (inputs, batch), "float32", align=4)
        values = T.match_buffer(values_handle, (tiles, slots, tile), "float32")
        out = T.match_buffer(out_handle, (outputs, batch), "float32", align=4)
        first = T.match_buffer(first_handle, (count + 1,), "int32")
        target = T.match_buffer(target_handle, (count,), "int32")
        flags = T.match_buffer(flags_handle, (count,), "int32")
        place = T.match_buffer(place_handle, (count,), "int32")
        source = T.match_buffer(source_handle, (edges,), "int32")
        weight = T.match_buffer(weight_handle, (edges,), "float32")
        bias = T.match_buffer(bias_handle, (count,), "float32")
        for b in over(tiles):
            # The default scope: below 1 KB it is the stack, which LLVM promotes to registers
            # ("local" would be TVM's workspace, stored to after every loop).
            total = T.alloc_buffer((tile,), "float32")
            for i in T.serial(staged):
                for k in T.unroll(vectors):
                    values[b, i, T.ramp(k * width, 1, width)] = x[
                        i, T.ramp(b * tile + k * width, 1, width)
                    ]
            for g in T.serial(count):
                if T.bitwise_and(flags[g], fresh) != 0:
                    for k in T.unroll(vectors):
                        total[T.ramp(k * width, 1, width)] = T.broadcast(bias[g], width)
                else:
                    for k in T.unroll(vectors):
                        total[T.ramp(k * width, 1, width)] = values[
                            b, target[g], T.ramp(k * width, 1, width)
                        ]
                if T.bitwise_and(flags[g], from_inputs) != 0:
                    for e in T.serial(first[g + 1] - first[g]):
                        for k in T.unroll(vectors):
                            total[T.ramp(k * width, 1, width)] = (
                                total[T.ramp(k * width, 1, width)]
                                + T.broadcast(weight[first[g] + e], width)
                                * x[source[first[g] + e], T.ramp(b * tile + k * width, 1, width)]
                            )
                else:
                    for e in T.serial(first[g + 1] - first[g]):
                        for k in T.unroll(vectors):
                            total[T.ramp(k * width, 1, width)] = (
                                total[T.ramp(k * width, 1, width)]
                                + T.broadcast(weight[first[g] + e], width)
                                * values[b, source[first[g] + e], T.ramp(k * width, 1, width)]
                            )
                if T.bitwise_and(flags[g], relu) != 0:
                    for k in T.unroll(vectors):
                        total[T.ramp(k * width, 1, width)] = T.max(
                            total[T.ramp(k * width, 1, width)],
                            T.broadcast(T.float32(0), width),
                        )
                for k in T.unroll(vectors):
                    values[b, target[g], T.ramp(k * width, 1, width)] = total[
                        T.ramp(k * width, 1, width)
                    ]
                if T.bitwise_and(flags[g], output) != 0:
                    for k in T.unroll(vectors):
                        out[place[g], T.ramp(b * tile + k * width, 1, width)] = total[
                            T.ramp(k * width, 1, width)
                        ]

    return sparse
