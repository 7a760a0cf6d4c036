"""Attention as people write it by hand, each in a way of its own: modules of torch, x (batch, tokens, 128) to the same
shape, two layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH: Final = 128
LAYERS: Final = 2
LOWEST: Final = torch.finfo(torch.float32).min


@dataclass(frozen=True)
class Sizes:
    """batch and tokens are traced values; every use of a shape again would add nodes to an export."""

    batch: int
    tokens: int
    heads: int
    kv_heads: int
    head_dim: int


Attend = Callable[[Tensor, Tensor, Tensor, Sizes], Tensor]


class Projected(nn.Module):
    """Four projections around `attend`, whose operands are (batch, heads, tokens, head_dim)."""

    def __init__(self, attend: Attend, heads: int = 2, kv_heads: int = 2, head_dim: int = 64) -> None:
        super().__init__()
        self.attend, self.heads, self.kv_heads, self.head_dim = attend, heads, kv_heads, head_dim
        self.q = nn.Linear(WIDTH, heads * head_dim)
        self.k = nn.Linear(WIDTH, kv_heads * head_dim)
        self.v = nn.Linear(WIDTH, kv_heads * head_dim)
        self.o = nn.Linear(heads * head_dim, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (
            project(x).view(batch, tokens, heads, self.head_dim).transpose(1, 2)
            for project, heads in ((self.q, self.heads), (self.k, self.kv_heads), (self.v, self.kv_heads))
        )
        attended = self.attend(q, k, v, Sizes(batch, tokens, self.heads, self.kv_heads, self.head_dim))
        out: Tensor = self.o(attended.transpose(1, 2).reshape(batch, tokens, self.heads * self.head_dim))
        return out


class Stack(nn.Module):
    """Two attentions with norms and residuals."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.ls = nn.ModuleList(make() for _ in range(LAYERS))
        self.n = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        for attention, norm in zip(self.ls, self.n, strict=True):
            x = x + attention(norm(x))
        return x


class TorchMultiHead(nn.Module):
    """torch's own layer under a causal mask, with or without the weights that it can return."""

    def __init__(self, need_weights: bool) -> None:
        super().__init__()
        self.need_weights = need_weights
        self.a = nn.ModuleList(nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        if self.need_weights:
            mask = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), 1)
        else:
            mask = torch.triu(torch.full((tokens, tokens), -math.inf), 1)
        for attention in self.a:
            x = x + attention(x, x, x, attn_mask=mask, need_weights=self.need_weights)[0]
        return x


def sdpa_causal(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def sdpa_grouped(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def sdpa_boolean(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    mask = torch.tril(torch.ones(of.tokens, of.tokens, dtype=torch.bool))
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def bidirectional(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v)


def added_triangle(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    """LLaMA's first code: scores divided, a triangle of -inf added, softmax in float."""
    mask = torch.triu(torch.full((of.tokens, of.tokens), -math.inf), 1)
    scores = q @ k.transpose(2, 3) / math.sqrt(of.head_dim) + mask
    return functional.softmax(scores.float(), -1).type_as(q) @ v


def flattened(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    """OPT's way: heads folded into the batch, scores clamped from below."""
    flat, square = (of.batch * of.heads, of.tokens, of.head_dim), (of.tokens, of.tokens)
    q, k, v = (x.reshape(flat) for x in (q * of.head_dim**-0.5, k, v))
    scores = torch.bmm(q, k.transpose(1, 2)).view(of.batch, of.heads, *square)
    scores = scores + torch.triu(torch.full(square, LOWEST), 1)
    scores = torch.max(scores, torch.tensor(LOWEST)).view(of.batch * of.heads, *square)
    out = torch.bmm(functional.softmax(scores, -1), v)
    return out.view(of.batch, of.heads, of.tokens, of.head_dim)


def grouped_in_five(q: Tensor, k: Tensor, v: Tensor, of: Sizes) -> Tensor:
    """Groups of query heads in a dimension of their own; keys are never repeated."""
    q = q.reshape(of.batch, of.kv_heads, of.heads // of.kv_heads, of.tokens, of.head_dim)
    scores = q @ k.unsqueeze(2).transpose(3, 4) * of.head_dim**-0.5
    visible = torch.tril(torch.ones(of.tokens, of.tokens, dtype=torch.bool))
    scores = torch.where(visible, scores, LOWEST)
    out = functional.softmax(scores, -1) @ v.unsqueeze(2)
    return out.reshape(of.batch, of.heads, of.tokens, of.head_dim)


MODULES: Final[dict[str, Callable[[], nn.Module]]] = {
    "bidir": lambda: Stack(lambda: Projected(bidirectional)),
    "bmm3d": lambda: Stack(lambda: Projected(flattened)),
    "gqa5d": lambda: Stack(lambda: Projected(grouped_in_five, heads=4)),
    "mha": lambda: TorchMultiHead(need_weights=False),
    "mha_w": lambda: TorchMultiHead(need_weights=True),
    "sdpa_boolmask": lambda: Stack(lambda: Projected(sdpa_boolean)),
    "sdpa_causal": lambda: Stack(lambda: Projected(sdpa_causal)),
    "sdpa_gqa": lambda: Stack(lambda: Projected(sdpa_grouped, heads=4, kv_heads=1)),
    "triu_inf": lambda: Stack(lambda: Projected(added_triangle, head_dim=128)),
}
