"""Single operators of PyTorch with random options and shapes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tests.conformance.torch_draws import Built, Call, Draw, spatial
from tests.conformance.torch_moving import (
    chosen,
    image_shuffle,
    indexed,
    interpolate,
    joined,
    moved,
    ordered,
    padding,
    sample,
)
from tests.conformance.torch_pointwise import activation, binary, reduction, unary


def convolution(draw: Draw) -> Built:
    rank, groups = draw.choice((1, 2, 2, 2, 3)), draw.choice((1, 1, 2, 4))
    inputs, outputs = 4, draw.choice((4, 8))
    kernel, dilation = draw.randint(1, 3), draw.choice((1, 1, 2))
    mode = draw.choice(("zeros", "zeros", "reflect", "replicate", "circular"))
    padding: Any = draw.randint(0, 2)
    stride = draw.choice((1, 1, 2, 3))
    if stride == 1 and draw.random() < 0.3:
        padding = "same"
    net = getattr(nn, f"Conv{rank}d")(
        inputs, outputs, kernel, stride, padding, dilation, groups, draw.random() < 0.5, mode
    )
    return net, (spatial(draw, rank, inputs),)


def transposed(draw: Draw) -> Built:
    rank, groups = draw.choice((1, 2, 2, 3)), draw.choice((1, 1, 2))
    stride, dilation = draw.choice((1, 2, 3)), draw.choice((1, 1, 2))
    extra = draw.randint(0, max(stride, dilation) - 1)
    net = getattr(nn, f"ConvTranspose{rank}d")(
        4,
        draw.choice((2, 6)),
        draw.randint(1, 4),
        stride,
        draw.randint(0, 1),
        extra,
        groups,
        draw.random() < 0.5,
        dilation,
    )
    return net, (spatial(draw, rank, 4),)


def pool(draw: Draw) -> Built:
    rank, kernel = draw.choice((1, 2, 2, 3)), draw.randint(2, 4)
    options: dict[str, Any] = {
        "stride": draw.choice((None, 1, 2, 3)),
        "padding": draw.randint(0, kernel // 2),
        "ceil_mode": draw.random() < 0.5,
    }
    x = spatial(draw, rank, 3)
    if draw.random() < 0.5:
        options["count_include_pad"] = draw.random() < 0.5
        if rank > 1 and draw.random() < 0.3:
            options["divisor_override"] = draw.randint(1, 5)
        return getattr(nn, f"AvgPool{rank}d")(kernel, **options), (x,)
    return getattr(nn, f"MaxPool{rank}d")(kernel, dilation=draw.choice((1, 1, 2)), **options), (x,)


def adaptive(draw: Draw) -> Built:
    rank, kind = draw.choice((1, 2, 2, 3)), draw.choice(("Avg", "Max"))
    x = spatial(draw, rank, 3)
    if draw.random() < 0.5:
        return getattr(nn, f"Adaptive{kind}Pool{rank}d")(draw.randint(1, 4)), (x,)
    size = tuple(draw.choice((1, 2, extent)) for extent in x.shape[2:])
    return getattr(nn, f"Adaptive{kind}Pool{rank}d")(size), (x,)


def norm(draw: Draw) -> Built:
    rank = draw.choice((1, 2, 3))
    x = spatial(draw, rank, 4, 3) * 3 + 1
    affine = draw.random() < 0.6
    made: nn.Module = draw.choice(
        (
            lambda: nn.GroupNorm(draw.choice((1, 2, 4)), 4, affine=affine),
            lambda: getattr(nn, f"InstanceNorm{rank}d")(4, affine=affine),
            lambda: getattr(nn, f"BatchNorm{rank}d")(4, affine=affine),
            lambda: nn.LayerNorm(x.shape[-draw.randint(1, 2) :], elementwise_affine=affine),
            lambda: nn.LocalResponseNorm(draw.choice((2, 3))),
            lambda: nn.RMSNorm(x.shape[-1], elementwise_affine=affine),
            lambda: Call(lambda t: F.normalize(t, p=2.0, dim=1)),
        )
    )()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    for name, buffer in made.named_buffers():
        if name.startswith("running"):
            buffer.uniform_(0.5, 2)
    return made, (x,)


def product(draw: Draw) -> Built:
    n, m, k, b = (draw.randint(1, 5) for _ in range(4))
    a2, b2, a3, b3 = (
        torch.randn(n, k),
        torch.randn(k, m),
        torch.randn(b, n, k),
        torch.randn(b, k, m),
    )
    return draw.choice(
        (
            (Call(torch.matmul), (a2, b2)),
            (Call(torch.matmul), (a3, b3)),
            (Call(torch.matmul), (a3, b2)),
            (Call(torch.matmul), (a2, b3)),
            (Call(torch.matmul), (torch.randn(k), b2)),
            (Call(torch.matmul), (a3, torch.randn(k))),
            (Call(torch.matmul), (torch.randn(k), torch.randn(k))),
            (Call(torch.bmm), (a3, b3)),
            (
                Call(lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2)),
                (torch.randn(m), a2, b2),
            ),
            (Call(lambda c, x, y: torch.baddbmm(c, x, y)), (torch.randn(b, n, m), a3, b3)),
            (Call(lambda x, y: torch.einsum("bik,bkj->bij", x, y)), (a3, b3)),
            (Call(lambda x, y: torch.einsum("bik,kj->jbi", x, y)), (a3, b2)),
            (Call(lambda x, y: torch.einsum("ik,kj->", x, y)), (a2, b2)),
            (Call(lambda x: torch.einsum("bik->kb", x)), (a3,)),
            (Call(torch.outer), (torch.randn(n), torch.randn(m))),
            (Call(lambda x, y: torch.tensordot(x, y, dims=([2], [1]))), (a3, b3)),
            (Call(torch.kron), (a2, b2)),
            (nn.Linear(k, m, bias=draw.random() < 0.5), (a3,)),
            (nn.Bilinear(k, 3, m), (a2, torch.randn(n, 3))),
        )
    )


def attention(draw: Draw) -> Built:
    heads, t, s = draw.choice((1, 2)), draw.randint(1, 5), draw.randint(1, 5)
    q, k, v = torch.randn(2, heads, t, 4), torch.randn(2, heads, s, 4), torch.randn(2, heads, s, 3)
    scale = draw.choice((None, 0.3))
    kind = draw.choice(("plain", "causal", "bool", "float"))
    if kind == "plain":
        return Call(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, scale=scale)), (q, k, v)
    if kind == "causal":
        return (
            Call(
                lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True, scale=scale)
            ),
            (q, k, v),
        )
    mask: Tensor = torch.randn(2, 1, t, s)
    if kind == "bool":
        mask = mask > -0.5
        mask[..., 0] = True
    return (
        Call(lambda a, b, c, m: F.scaled_dot_product_attention(a, b, c, m, scale=scale)),
        (q, k, v, mask),
    )


OPS: dict[str, Callable[[Draw], Built]] = {
    "convolution": convolution,
    "transposed": transposed,
    "pool": pool,
    "adaptive": adaptive,
    "norm": norm,
    "activation": activation,
    "unary": unary,
    "binary": binary,
    "reduction": reduction,
    "product": product,
    "joined": joined,
    "moved": moved,
    "image_shuffle": image_shuffle,
    "indexed": indexed,
    "padding": padding,
    "interpolate": interpolate,
    "sample": sample,
    "ordered": ordered,
    "chosen": chosen,
    "attention": attention,
}
"""Kinds of operators by name: each draws the operator, its options and its inputs."""
