"""A backend outside of TVM that emits C: convolutions with ``relu``, through ``RunCodegen``.

The C of a region reads DLPack tensors by their ``data`` alone, as many backends do, and keeps a
padded copy of its input as scratch of its own. TVM compiles and links it with its own kernels.
"""

from typing import Any

import numpy as np
import tvm_ffi
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from tvm_serenity import compat

NAME = "emitted_c"

TEMPLATE = """
#include <dlpack/dlpack.h>
#include <stdint.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

static float %(name)s_scratch[%(scratch)d];
static const float %(name)s_weight[] = {%(weights)s};

static float* %(name)s_data(const TVMFFIAny* value) {
  if (value->type_index == kTVMFFIDLTensorPtr) return (float*)((DLTensor*)value->v_ptr)->data;
  return (float*)((DLTensor*)((char*)value->v_ptr + sizeof(TVMFFIObject)))->data;
}

#ifdef __cplusplus
extern "C"
#endif
int32_t __tvm_ffi_%(name)s(void* self, TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  enum { I = %(I)d, O = %(O)d, H = %(H)d, W = %(W)d, K = %(K)d, P = K / 2 };
  enum { S = W + 2 * P, ROWS = H };
  const float* in = %(name)s_data(args);
  float* out = %(name)s_data(args + 1);
  (void)self;
  result->type_index = kTVMFFINone;
  if (count != 2) return -1;
  memset(%(name)s_scratch, 0, sizeof %(name)s_scratch);
  for (int c = 0; c < I; ++c)
    for (int y = 0; y < H; ++y)
      memcpy(%(name)s_scratch + (c * (H + 2 * P) + y + P) * S + P, in + (c * H + y) * W, W * 4);
  for (int o = 0; o < O; ++o)
    for (int y = 0; y < ROWS; ++y)
      for (int x = 0; x < W; ++x) {
        float sum = 0;
        for (int c = 0; c < I; ++c)
          for (int i = 0; i < K; ++i)
            for (int j = 0; j < K; ++j)
              sum += %(name)s_scratch[(c * (H + 2 * P) + y + i) * S + x + j] *
                     %(name)s_weight[((o * I + c) * K + i) * K + j];
        out[(o * H + y) * W + x] = %(relu)d && sum < 0 ? 0 : sum;
      }
  return 0;
}
"""


def patterns() -> list[Any]:
    """Return a convolution with ``relu``, and one alone."""
    convolution = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    both = is_op("relax.nn.relu")(convolution)
    return [(f"{NAME}.conv2d_relu", both), (f"{NAME}.conv2d", convolution)]


def _sizes(function: Any) -> dict[str, Any]:
    """What the C of a region states: extents, weights, whether it ends with ``relu``."""
    inner = function.body.blocks[0].bindings[0].value
    calls = [b.value for b in inner.body.blocks[0].bindings]
    kernel = compat.constant_array(calls[0].args[1])
    _, channels, height, width = (int(extent) for extent in function.params[0].ty.shape)
    size = kernel.shape[2]
    assert kernel.shape[1:] == (channels, size, size)
    assert {int(p) for p in calls[0].attrs.padding} == {size // 2}
    padded = (height + 2 * (size // 2)) * (width + 2 * (size // 2))
    return {
        "name": str(function.attrs["global_symbol"]),
        "I": channels,
        "O": kernel.shape[0],
        "H": height,
        "W": width,
        "K": size,
        "relu": len(calls) - 1,
        "scratch": channels * padded,
        "weights": ", ".join(float(v).hex() for v in np.ravel(kernel)),
    }


def generate(functions: Any, _options: Any, _names: Any) -> list[Any]:
    """The code generator ``relax.ext.emitted_c``: one module of C for all regions."""
    sizes = [_sizes(function) for function in functions]
    code = "".join(TEMPLATE % one for one in sizes)
    make = tvm_ffi.get_global_func("runtime.CSourceModuleCreate")
    return [make(code, "c", [one["name"] for one in sizes], [])]


def partitioned(module: Any) -> tuple[Any, dict[str, int]]:
    """Return ``module`` with its convolutions as C, and the scratch bytes of each region."""
    tvm_ffi.register_global_func(f"relax.ext.{NAME}", generate, override=True)
    fuse = relax.transform.FuseOpsByPattern(patterns(), bind_constants=True, annotate_codegen=True)
    fused = fuse(module)
    regions = [_sizes(f) for f in fused.functions.values() if "Codegen" in (f.attrs or {})]
    made = relax.transform.RunCodegen()(fused)
    return made, {one["name"]: 4 * one["scratch"] for one in regions}
