"""Single operators of PyTorch with random options and shapes."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

Built = tuple[nn.Module, tuple[Tensor, ...]]
Draw = random.Random


class Call(nn.Module):
    """A function of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def shape(draw: Draw, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(draw.choice((1, 2, 3, 4, 5, 7)) for _ in range(draw.randint(least, most)))


def spatial(draw: Draw, rank: int, channels: int, least: int = 5) -> Tensor:
    return torch.randn(
        draw.choice((1, 2)), channels, *(draw.randint(least, 9) for _ in range(rank))
    )


def broadcast(draw: Draw, whole: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``whole``."""
    kept = tuple(1 if draw.random() < 0.3 else extent for extent in whole)
    return kept[draw.randint(0, len(kept)) :] if draw.random() < 0.4 else kept


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
            (Call(lambda x, y: torch.tensordot(x, y, dims=([2], [1]))), (a3, b3.mT.contiguous())),
            (Call(torch.kron), (a2, b2)),
            (nn.Linear(k, m, bias=draw.random() < 0.5), (a3,)),
            (nn.Bilinear(k, 3, m), (a2, torch.randn(n, 3))),
        )
    )


def joined(draw: Draw) -> Built:
    whole = shape(draw, 2)
    x, axis = torch.randn(whole), draw.randrange(-len(whole), len(whole))
    extent = whole[axis]
    y = torch.randn([e if i != axis % len(whole) else 3 for i, e in enumerate(whole)])
    at = draw.randint(1, extent)
    return draw.choice(
        (
            (Call(lambda a, b: torch.cat([a, b, a], axis)), (x, y)),
            (Call(lambda a: torch.stack([a, a * 2], axis)), (x,)),
            (Call(lambda a: torch.split(a, at, axis)), (x,)),
            (Call(lambda a: torch.chunk(a, 2, axis)), (x,)),
            (Call(lambda a: torch.unbind(a, axis)), (x,)),
            (Call(lambda a: torch.tensor_split(a, 2, axis)), (x,)),
            (Call(lambda a: torch.split(a, [at, extent - at], axis)), (x,)),
            (Call(lambda a: a.repeat(*(2 for _ in whole))), (x,)),
            (Call(lambda a: torch.tile(a, (2, 1))), (x,)),
            (Call(lambda a: a.repeat_interleave(2, axis)), (x,)),
            (Call(lambda a: torch.hstack([a, a])), (x,)),
        )
    )


def moved(draw: Draw) -> Built:
    x = torch.randn(shape(draw, 3, 4))
    axes = list(range(x.dim()))
    draw.shuffle(axes)
    axis = draw.randrange(-x.dim(), x.dim())
    return draw.choice(
        (
            (Call(lambda a: a.permute(axes)), (x,)),
            (Call(lambda a: a.transpose(0, axis)), (x,)),
            (Call(lambda a: a.flatten(1)), (x,)),
            (Call(lambda a: a.reshape(-1, a.shape[-1])), (x,)),
            (Call(lambda a: a.unsqueeze(axis)), (x,)),
            (Call(lambda a: a.squeeze()), (x,)),
            (Call(lambda a: torch.flip(a, [0, axis] if axis % a.dim() else [0])), (x,)),
            (Call(lambda a: torch.roll(a, 2, axis)), (x,)),
            (Call(lambda a: torch.roll(a, 3)), (x,)),
            (Call(lambda a: torch.movedim(a, 0, axis)), (x,)),
            (Call(lambda a: a.unsqueeze(0).expand(3, *a.shape)), (x,)),
            (
                Call(lambda a: torch.rot90(a, draw_k, [0, 1]))
                if (draw_k := draw.randint(1, 3))
                else x,
                (x,),
            ),
            (Call(lambda a: a.unfold(axis, 1, 1)), (x,)),
            (Call(lambda a: torch.tril(a, 1)), (x,)),
            (Call(lambda a: torch.triu(a, -1)), (x,)),
            (Call(lambda a: torch.diagonal(a, 0, 0, 1)), (x,)),
        )
    )


def image_shuffle(draw: Draw) -> Built:
    x = torch.randn(1, 8, 4, 6)
    return draw.choice(
        (
            (nn.PixelShuffle(2), (x,)),
            (nn.PixelUnshuffle(2), (x,)),
            (nn.ChannelShuffle(draw.choice((2, 4))), (x,)),
            (nn.Unfold(draw.randint(1, 3), 1, draw.randint(0, 1), draw.randint(1, 2)), (x,)),
            (nn.Fold((4, 6), 2, stride=2), (torch.randn(1, 8, 6),)),
        )
    )


def indexed(draw: Draw) -> Built:
    x = torch.randn(5, 6, 7)
    start, stop, step = draw.randint(-6, 3), draw.randint(2, 9), draw.randint(1, 3)
    index = torch.randint(0, 5, (4,))
    wide = torch.randint(0, 5, (3, 6, 7))
    return draw.choice(
        (
            (Call(lambda a: a[start:stop:step]), (x,)),
            (Call(lambda a: a[:, start:stop]), (x,)),
            (Call(lambda a: a[..., -1]), (x,)),
            (Call(lambda a: a[:, 1, None, ::step]), (x,)),
            (Call(lambda a, i: a[i]), (x, index)),
            (Call(lambda a, i: a[:, i]), (x, index)),
            (Call(lambda a, i: a[i, i]), (x, index)),
            (Call(lambda a, i: a[i, :, i]), (x, index)),
            (Call(lambda a, i: a[i - 5]), (x, index)),
            (Call(lambda a, i: torch.index_select(a, 1, i)), (x, index)),
            (Call(lambda a, i: torch.gather(a, 0, i)), (x, wide)),
            (Call(lambda a, i: torch.take_along_dim(a, i, 0)), (x, wide)),
            (Call(lambda a, i: torch.scatter(a, 0, i, 2.0)), (x, wide[:1])),
            (Call(lambda a, i, s: torch.scatter_add(a, 0, i, s)), (x, wide, torch.randn(3, 6, 7))),
            (Call(lambda a, i, s: torch.index_add(a, 0, i, s)), (x, index, torch.randn(4, 6, 7))),
            (Call(lambda a, i: torch.index_fill(a, 1, i, 3.0)), (x, index)),
            (Call(lambda a, b: torch.slice_scatter(a, b, 1, 1, 5, 2)), (x, torch.randn(5, 2, 7))),
            (Call(lambda a, b: torch.select_scatter(a, b, 1, 2)), (x, torch.randn(5, 7))),
            (
                Call(lambda a, i, v: a.clone().index_put((i,), v)),
                (x, torch.tensor([0, 3]), torch.randn(2, 6, 7)),
            ),
            (nn.Embedding(5, 3), (index,)),
            (nn.EmbeddingBag(5, 3, mode=draw.choice(("sum", "mean", "max"))), (index.view(2, 2),)),
            (Call(lambda i: F.one_hot(i, 6)), (index,)),
        )
    )


def padding(draw: Draw) -> Built:
    x = torch.randn(2, 3, 5, 6)
    mode = draw.choice(("constant", "constant", "reflect", "replicate", "circular"))
    count = draw.choice((2, 4)) if mode != "constant" else draw.choice((2, 4, 6))
    x = x[0] if mode != "constant" and count == 2 else x
    sides = [draw.randint(-1 if mode == "constant" else 0, 2) for _ in range(count)]
    value = draw.choice((0.0, 1.5)) if mode == "constant" else None
    return Call(lambda a: F.pad(a, sides, mode, value)), (x,)


def interpolate(draw: Draw) -> Built:
    mode = draw.choice(
        ("nearest", "nearest-exact", "bilinear", "bicubic", "area", "linear", "trilinear")
    )
    rank = {"bilinear": 2, "bicubic": 2, "linear": 1, "trilinear": 3}.get(
        mode, draw.choice((1, 2, 2, 3))
    )
    x = spatial(draw, rank, 2, 3)
    options: dict[str, Any] = {}
    if "linear" in mode or mode == "bicubic":
        options["align_corners"] = draw.random() < 0.5
        if rank == 2 and draw.random() < 0.2:
            options["antialias"] = True
    if draw.random() < 0.5:
        size = [draw.randint(2, 12) for _ in range(rank)]
        return Call(lambda a: F.interpolate(a, size=size, mode=mode, **options)), (x,)
    scale = draw.choice((2, 0.5, 1.5, 3))
    if options or mode.startswith("nearest"):
        options["recompute_scale_factor"] = draw.random() < 0.3
    return Call(lambda a: F.interpolate(a, scale_factor=scale, mode=mode, **options)), (x,)


def sample(draw: Draw) -> Built:
    x, grid = torch.randn(1, 2, 5, 6), torch.rand(1, 4, 3, 2) * 2.4 - 1.2
    mode = draw.choice(("bilinear", "nearest", "bicubic"))
    pads, align = draw.choice(("zeros", "border", "reflection")), draw.random() < 0.5
    return Call(lambda a, g: F.grid_sample(a, g, mode, pads, align)), (x, grid)


def ordered(draw: Draw) -> Built:
    x = torch.randperm(60).float().view(3, 4, 5)
    axis, largest = draw.randrange(-3, 3), draw.random() < 0.5
    k = draw.randint(1, x.shape[axis])
    return draw.choice(
        (
            (Call(lambda a: torch.topk(a, k, axis, largest)), (x,)),
            (Call(lambda a: torch.sort(a, axis, descending=largest)), (x,)),
            (Call(lambda a: torch.argsort(a, axis, descending=largest)), (x,)),
            (Call(lambda a: torch.max(a, axis)), (x,)),
            (Call(lambda a: torch.min(a, axis, keepdim=largest)), (x,)),
            (Call(lambda a: torch.median(a, axis)), (x,)),
            (Call(lambda a: torch.kthvalue(a, k, axis)), (x,)),
            (Call(lambda a: torch.cumsum(a, axis)), (x,)),
            (Call(lambda a: torch.cumprod(a / 30, axis)), (x,)),
            (Call(lambda a: torch.cummax(a, axis)), (x,)),
            (Call(lambda a: torch.diff(a, dim=axis)), (x,)),
            (Call(lambda a: torch.logcumsumexp(a / 60, axis)), (x,)),
            (Call(lambda a: torch.searchsorted(torch.arange(0.0, 60, 7), a)), (x,)),
            (Call(lambda a: torch.bucketize(a, torch.arange(0.0, 60, 7), right=largest)), (x,)),
        )
    )


def chosen(draw: Draw) -> Built:
    whole = shape(draw, 2)
    x, y = torch.randn(whole), torch.randn(broadcast(draw, whole))
    low = draw.choice((None, -0.5))
    high = draw.choice((0.5, None)) if low is not None else 0.3
    return draw.choice(
        (
            (Call(lambda a, b: torch.where(a > 0, a, b)), (x, y)),
            (Call(lambda a: torch.where(a > 0, a, 0.5)), (x,)),
            (
                Call(lambda a: a.masked_fill(a < 0, draw_v))
                if (draw_v := draw.choice((-1e9, 2.0)))
                else x,
                (x,),
            ),
            (Call(lambda a: torch.clamp(a, low, high)), (x,)),
            (Call(lambda a, b: torch.clamp(a, min=b)), (x, y)),
            (Call(lambda a: torch.nan_to_num(a / a.relu())), (x,)),
            (Call(lambda a, b: torch.lerp(a, b, 0.3)), (x, y.expand(whole).contiguous())),
            (Call(lambda a, b: torch.addcmul(a, a, b, value=0.5)), (x, y)),
            (Call(lambda a, b: torch.addcdiv(a, a, b.abs() + 1, value=0.5)), (x, y)),
            (Call(lambda a: a.to(torch.int32)), (x * 5,)),
            (Call(lambda a: a.to(torch.bool)), (x.round(),)),
            (Call(lambda a: a.to(torch.float64)), (x,)),
            (Call(lambda a: a.bool().int() & 1), (x.round(),)),
            (Call(lambda a: (a.int() << 1) | 1), (x * 9,)),
            (Call(lambda a: ~a.int()), (x * 9,)),
            (Call(lambda a: torch.full_like(a, 3.0) + a.new_zeros(a.shape)), (x,)),
            (Call(lambda a: a + torch.arange(a.shape[-1])), (x,)),
            (Call(lambda a: a + torch.linspace(0, 1, a.shape[-1])), (x,)),
            (Call(lambda a: F.cosine_similarity(a, a * 2 + 1, dim=-1)), (x,)),
            (Call(lambda a, b: torch.cdist(a, b)), (torch.randn(2, 3, 4), torch.randn(2, 5, 4))),
            (
                Call(
                    lambda a: torch.meshgrid(
                        a[0, :2].flatten()[:2], a[0].flatten()[:1], indexing="ij"
                    )
                ),
                (x,),
            ),
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
