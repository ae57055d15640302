"""Small transformers, recurrent networks and mixers in PyTorch, with random options."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Built = tuple[nn.Module, tuple[Tensor, ...]]
Draw = random.Random


class Attention(nn.Module):
    """Attention by hand or by ``scaled_dot_product_attention``; ``causal``: of what came before."""

    def __init__(self, width: int, heads: int, causal: bool = False, fused: bool = False) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.fused = heads, causal, fused

    def forward(self, x: Tensor) -> Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
            if self.causal:
                mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
                scores = scores.masked_fill(mask, float("-inf"))
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool, fused: bool, tanh: bool) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal, fused)
        act = nn.GELU(approximate="tanh" if tanh else "none")
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), act, nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int, draw: Draw) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        fused, tanh = draw.random() < 0.5, draw.random() < 0.5
        self.blocks = nn.Sequential(*(Block(width, 2, True, fused, tanh) for _ in range(2)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        place = torch.arange(ids.shape[1])
        x = self.blocks(self.tokens(ids) + self.places(place))
        return self.norm(x) @ self.tokens.weight.T


def gpt(draw: Draw) -> Built:
    length = draw.choice((5, 8))
    return Gpt(20, length, 8, draw), (torch.randint(0, 20, (draw.choice((1, 2)), length)),)


class Bert(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.tokens, self.kinds = nn.Embedding(30, 8, padding_idx=0), nn.Embedding(2, 8)
        norm_first, act = draw.random() < 0.5, draw.choice(("relu", "gelu"))
        layer = nn.TransformerEncoderLayer(
            8, 2, 16, activation=act, batch_first=True, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pooler = nn.Linear(8, 8)

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tokens(ids) + self.kinds(kinds)
        x = self.encoder(x, src_key_padding_mask=mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert(draw: Draw) -> Built:
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[1, 4:] = True
    ids, kinds = torch.randint(0, 30, (2, 6)), torch.randint(0, 2, (2, 6))
    return Bert(draw), (ids, kinds, mask)


class Vit(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.places = nn.Parameter(torch.randn(1, 17, 8))
        self.blocks = nn.Sequential(*(Block(8, 2, False, draw.random() < 0.5, False) for _ in "ab"))
        self.norm, self.head = nn.LayerNorm(8, 1e-6), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit(draw: Draw) -> Built:
    return Vit(draw), (torch.randn(draw.choice((1, 2)), 3, 16, 16),)


class Swin(nn.Module):
    """Attention in shifted windows of 4 x 4, then patches merged."""

    def __init__(self, width: int, shift: int) -> None:
        super().__init__()
        self.stem, self.shift = nn.Conv2d(3, width, 2, 2), shift
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, 2)
        self.merge = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image).permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        y = y.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        y = self.attention(y).view(n, h // 4, w // 4, 4, 4, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        x = x + torch.roll(y, (self.shift, self.shift), (1, 2))
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.merge(torch.cat(parts, -1)).mean((1, 2))


def swin(draw: Draw) -> Built:
    return Swin(8, draw.choice((0, 2))), (torch.randn(1, 3, 16, 16),)


class Mixer(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(tokens, 6), nn.GELU(), nn.Linear(6, tokens))
        self.along = nn.Sequential(nn.Linear(width, 12), nn.GELU(), nn.Linear(12, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.first(x).mT).mT
        return x + self.along(self.second(x))


def mixer(draw: Draw) -> Built:
    tokens = draw.choice((4, 9))
    return nn.Sequential(Mixer(tokens, 6), Mixer(tokens, 6)), (torch.randn(2, tokens, 6),)


class Recurrent(nn.Module):
    """``states``: the initial ones are inputs."""

    def __init__(self, net: nn.Module, states: bool, lstm: bool) -> None:
        super().__init__()
        self.net, self.states, self.lstm = net, states, lstm

    def forward(self, x: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        if not self.states:
            y, last = self.net(x)
        else:
            y, last = self.net(x, given if self.lstm else given[0])
        return (y, *last) if self.lstm else (y, last)


def recurrent(draw: Draw, kind: str) -> Built:
    width, hidden, layers = draw.choice((3, 4)), draw.choice((4, 5)), draw.choice((1, 1, 2))
    options: dict[str, Any] = {
        "num_layers": layers,
        "bias": draw.random() < 0.7,
        "batch_first": draw.random() < 0.5,
        "bidirectional": draw.random() < 0.4,
    }
    if kind == "LSTM" and draw.random() < 0.2:
        options["proj_size"] = 2
    if kind == "RNN":
        options["nonlinearity"] = draw.choice(("tanh", "relu"))
    net = getattr(nn, kind)(width, hidden, **options)
    length, batch = draw.choice((1, 3, 5)), draw.choice((1, 2))
    batched = draw.random() < 0.8
    x = torch.randn(*((batch, length) if options["batch_first"] else (length, batch)), width)
    x = x if batched else torch.randn(length, width)
    rows = layers * (2 if options["bidirectional"] else 1)
    sizes = [options.get("proj_size", hidden), hidden][: 2 if kind == "LSTM" else 1]
    states = draw.random() < 0.5
    middle = (batch,) if batched else ()
    given = tuple(torch.randn(rows, *middle, size) for size in sizes) if states else ()
    return Recurrent(net, states, kind == "LSTM"), (x, *given)


class Cells(nn.Module):
    """A cell applied step by step."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = self.cell(x[0])
        for step in x[1:]:
            state = self.cell(step, state)
        return state[0] if isinstance(state, tuple) else state


def cells(draw: Draw) -> Built:
    return Cells(draw.choice(("LSTMCell", "GRUCell", "RNNCell"))), (torch.randn(3, 2, 3),)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 1)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True)


SEQUENCES: dict[str, Callable[[Draw], Built]] = {
    "gpt": gpt,
    "bert": bert,
    "vit": vit,
    "swin": swin,
    "mixer": mixer,
    "lstm": lambda draw: recurrent(draw, "LSTM"),
    "gru": lambda draw: recurrent(draw, "GRU"),
    "rnn": lambda draw: recurrent(draw, "RNN"),
    "cells": cells,
    "decoder": lambda draw: (Decoder(), (torch.randn(1, 4, 8), torch.randn(1, 6, 8))),
    "multihead": lambda draw: (_SelfAttention(draw), (torch.randn(2, 5, 8),)),
}
"""Networks of sequences by name: each draws its options."""


class _SelfAttention(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.net = nn.MultiheadAttention(8, 2, bias=draw.random() < 0.5, batch_first=True)
        self.weights = draw.random() < 0.5

    def forward(self, x: Tensor) -> Tensor:
        y, weights = self.net(x, x, x, need_weights=self.weights)
        return y if weights is None else torch.cat([y, weights], -1)
