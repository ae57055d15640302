"""Operators of PyTorch that compute each element: activations, functions, reductions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.conformance.torch_draws import Built, Call, Draw, broadcast, shape

_ACTIVATIONS: tuple[Callable[[Draw], nn.Module], ...] = (
    *(
        lambda _d, k=k: getattr(nn, k)()
        for k in (
            "ReLU",
            "ReLU6",
            "SiLU",
            "Mish",
            "Hardswish",
            "Hardsigmoid",
            "Sigmoid",
            "Tanh",
            "LogSigmoid",
            "Softsign",
            "Tanhshrink",
            "SELU",
            "Identity",
            "Dropout",
        )
    ),
    lambda d: nn.ELU(d.choice((0.5, 1.0, 2.0))),
    lambda d: nn.CELU(d.choice((0.5, 2.0))),
    lambda d: nn.LeakyReLU(d.choice((0.01, 0.3))),
    lambda d: nn.GELU(d.choice(("none", "tanh"))),
    lambda d: nn.Softplus(d.choice((1, 2)), d.choice((1, 20))),
    lambda d: nn.Hardtanh(-d.random(), d.random()),
    lambda d: nn.Threshold(0.1, d.choice((0.0, 2.0))),
    lambda d: nn.Softshrink(0.5),
    lambda d: nn.Hardshrink(0.5),
    lambda d: nn.GLU(d.choice((1, -1))),
    lambda d: nn.PReLU(d.choice((1, 4))),
    lambda d: nn.Softmax(d.choice((0, 1, -1))),
    lambda d: nn.LogSoftmax(d.choice((1, -1))),
    lambda d: nn.Softmin(1),
)


def activation(draw: Draw) -> Built:
    return draw.choice(_ACTIVATIONS)(draw), (torch.randn(2, 4, 3, 6) * 3,)


_UNARY = (
    *("abs", "ceil", "floor", "round", "trunc", "sign", "neg", "exp", "expm1", "sin", "cos", "tan"),
    *("tanh", "sinh", "cosh", "atan", "asinh", "erf", "erfc", "sigmoid", "square", "frac", "isnan"),
    *("logical_not", "exp2", "relu", "positive", "sgn", "isfinite"),
)
_POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal", "digamma", "lgamma")


def unary(draw: Draw) -> Built:
    name = draw.choice((*_UNARY, *_POSITIVE, "asin", "acos", "atanh", "acosh"))
    x = torch.randn(shape(draw)) * 2
    if name in _POSITIVE:
        x = x.abs() + 0.1
    elif name in ("asin", "acos", "atanh"):
        x = torch.tanh(x)
    elif name == "acosh":
        x = x.abs() + 1
    return Call(getattr(torch, name)), (x,)


_BINARY = (
    *(
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "fmod",
        "remainder",
        "atan2",
        "floor_divide",
    ),
    *(
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "pow",
        "logical_and",
        "logical_or",
        "logical_xor",
        "fmax",
    ),
    *("hypot", "rsub"),
)

_LOGICAL = ("logical_and", "logical_or", "logical_xor")


def binary(draw: Draw) -> Built:
    name, whole = draw.choice(_BINARY), shape(draw)
    integers = draw.random() < 0.3 and name not in ("atan2", "pow", "hypot")
    if integers:
        a, b = torch.randint(-9, 9, whole), torch.randint(1, 9, broadcast(draw, whole))
    else:
        a, b = torch.randn(whole) * 3, torch.randn(broadcast(draw, whole)) * 3
    if name == "pow":
        a = a.abs() + 0.1
    if name == "div" and draw.random() < 0.6:
        mode = draw.choice(("trunc", "floor", None))
        return Call(lambda x, y: torch.div(x, y, rounding_mode=mode)), (a, b)
    if draw.random() < 0.3 and name not in (
        "maximum",
        "minimum",
        "atan2",
        "fmax",
        "hypot",
        *_LOGICAL,
    ):
        number = draw.choice((2, 3)) if integers else draw.choice((0.5, 2.0, 3))
        return Call(lambda x: getattr(torch, name)(x, number)), (a,)
    if name in ("add", "sub") and draw.random() < 0.3:
        return Call(lambda x, y: getattr(torch, name)(x, y, alpha=2)), (a, b)
    return Call(getattr(torch, name)), (a, b)


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{
        k: getattr(torch, k)
        for k in (
            "sum",
            "mean",
            "amax",
            "amin",
            "prod",
            "var",
            "std",
            "argmax",
            "argmin",
            "logsumexp",
            "all",
            "any",
        )
    },
    "norm": lambda x, *a, **k: torch.linalg.vector_norm(x, 2, *a, **k),
    "norm1": lambda x, *a, **k: torch.linalg.vector_norm(x, 1, *a, **k),
    "var0": lambda x, *a, **k: torch.var(x, *a, correction=0, **k),
}


def reduction(draw: Draw) -> Built:
    name = draw.choice(tuple(_REDUCTIONS))
    function, x = _REDUCTIONS[name], torch.randn(shape(draw, 2))
    if name in ("all", "any"):
        x = x > 0.8
    if name == "sum" and draw.random() < 0.3:
        x = torch.randint(-9, 9, x.shape)
    whole = name not in ("logsumexp", "norm", "norm1", "amax", "amin", "var0")
    if whole and draw.random() < 0.2 and x.numel() > 1:
        return Call(function), (x,)
    keep, axis = draw.random() < 0.5, draw.randrange(-x.dim(), x.dim())
    several = name not in ("prod", "argmax", "argmin", "all", "any") and draw.random() < 0.4
    axes: Any = tuple(draw.sample(range(x.dim()), 2)) if several else axis
    chosen = axes if isinstance(axes, tuple) else (axes,)
    if name in ("var", "std") and torch.Size([x.shape[a] for a in chosen]).numel() < 2:
        return reduction(draw)
    return Call(lambda t: function(t, dim=axes, keepdim=keep)), (x,)
