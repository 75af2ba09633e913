"""The network: qwen3 as llama.cpp reads it. Parameter names are those that export_gguf.py looks for."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = dict(vocab=4096, d=256, layers=8, heads=4, kv=2, hd=64, ffn=768, rope=100000.0, eps=1e-6, ctx=4096)


def rms_norm(x, weight, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def rope_table(length, head_size, base):
    frequencies = 1.0 / (base ** (torch.arange(0, head_size, 2).float() / head_size))
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return torch.cat([angles.cos(), angles.cos()], -1), torch.cat([angles.sin(), angles.sin()], -1)


def rotate(x, cos, sin):
    """Rotary positions in the neox order: the halves of a head are turned against each other."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return (x.float() * cos + turned.float() * sin).to(x.dtype)


def attention(q, k, v):
    """Causal; each key and value head serves several query heads."""
    repeats = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(repeats, 1)
    v = v.repeat_interleave(repeats, 1)
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    # PyTorch before 2.0
    length = q.shape[2]
    scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    future = torch.triu(torch.ones(length, length, dtype=torch.bool, device=q.device), 1)
    return torch.softmax(scores.masked_fill(future, float("-inf")).float(), -1).to(q.dtype) @ v


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, head_size = config["d"], config["hd"]
        self.config = config

        def linear(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)

        self.q = linear(d, config["heads"] * head_size)
        self.k = linear(d, config["kv"] * head_size)
        self.v = linear(d, config["kv"] * head_size)
        self.o = linear(config["heads"] * head_size, d)
        self.gate = linear(d, config["ffn"])
        self.up = linear(d, config["ffn"])
        self.down = linear(config["ffn"], d)
        self.n1 = nn.Parameter(torch.ones(d))
        self.n2 = nn.Parameter(torch.ones(d))
        self.qn = nn.Parameter(torch.ones(head_size))
        self.kn = nn.Parameter(torch.ones(head_size))
        std = 0.02 * math.sqrt(1024 / d)
        for layer in (self.q, self.k, self.v, self.gate, self.up):
            nn.init.normal_(layer.weight, std=std)
        for layer in (self.o, self.down):
            nn.init.normal_(layer.weight, std=std / math.sqrt(2 * config["layers"]))

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        config, eps = self.config, self.config["eps"]

        def heads(y, number):
            return y.view(batch, length, number, config["hd"]).transpose(1, 2)

        h = rms_norm(x, self.n1, eps)
        q = heads(self.q(h), config["heads"])
        k = heads(self.k(h), config["kv"])
        v = heads(self.v(h), config["kv"])
        q = rotate(rms_norm(q, self.qn, eps), cos, sin)
        k = rotate(rms_norm(k, self.kn, eps), cos, sin)
        x = x + self.o(attention(q, k, v).transpose(1, 2).reshape(batch, length, -1))
        h = rms_norm(x, self.n2, eps)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.emb = nn.Embedding(config["vocab"], config["d"])
        nn.init.normal_(self.emb.weight, std=0.02)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config["layers"])])
        self.nf = nn.Parameter(torch.ones(config["d"]))
        cos, sin = rope_table(config["ctx"], config["hd"], config["rope"])
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, ids, compiled=True):
        """What comes out of the last block. compiled=False: no recompilation for a length that was not seen before."""
        x, cos, sin = self.emb(ids), self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, cos, sin) if compiled else Block.forward(block, x, cos, sin)
        return x

    def head(self, hidden):
        """Logits; the embedding serves as output matrix."""
        return F.linear(rms_norm(hidden, self.nf, self.config["eps"]), self.emb.weight)

    def logits(self, ids):
        return self.head(self.hidden(ids, compiled=False))


def head_loss(hidden, norm, embedding, targets, eps, z_weight):
    """Mean cross-entropy, and the z-loss that keeps the logits' normaliser small."""
    logits = F.linear(rms_norm(hidden, norm, eps), embedding).float().view(-1, embedding.shape[0])
    normaliser = torch.logsumexp(logits, -1)
    losses = normaliser - logits.gather(1, targets.view(-1, 1)).squeeze(1)
    return losses.mean(), (z_weight * normaliser.pow(2)).mean()
