"""Modules of the usual sorts, against PyTorch in float64: results, buffers, open sizes."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from frontends.pytorch.against import checked
from frontends.pytorch.module import imported
from frontends.pytorch.reference import answer
from ir.autoschedule.seeds import launch_ends
from ir.partition.canonical import stem
from ir.partition.partition import partition
from ir.recurrence import recurrences


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + x)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        parts = self.into(x).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.inner = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.inner(self.norm2(x))


class Recommender(nn.Module):
    """Embedding bags, pairwise products, and a perceptron on top."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, 4, mode="sum") for n in (10, 7))
        self.dense = nn.Linear(5, 4)
        self.top = nn.Linear(4 + 3, 1)

    def forward(self, dense, indices, offsets):
        pooled = [t(i, o) for t, i, o in zip(self.tables, indices, offsets)]
        rows = torch.stack([F.relu(self.dense(dense)), *pooled], dim=1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        where = torch.tril_indices(3, 3, offset=-1)
        pairs = products[:, where[0], where[1]]
        return torch.sigmoid(self.top(torch.cat([rows[:, 0], pairs], dim=1)))


class Views(nn.Module):
    def forward(self, x):
        y = x.permute(2, 0, 1)[1:, ::2].flip(0)
        z = torch.cat([y.reshape(-1, 2), x[:, 0, :2].repeat(2, 1)], dim=0)
        return z.unsqueeze(1).repeat(1, 3, 1), torch.stack([z, z * 2]).chunk(2, dim=1)


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 1] = 0
        y[0].mul_(2).add_(1)
        y[:, :2] += x[:, 1:]
        return y.masked_fill_(y > 1, 0.5).clamp_(min=-0.25)


class Recurrent(nn.Module):
    def __init__(self, sort, **options):
        super().__init__()
        self.recurrent = getattr(nn, sort)(4, 5, **options)

    def forward(self, x):
        return self.recurrent(x)


def batch_norm():
    made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    with torch.no_grad():
        made[1].running_mean.uniform_(-1, 1)
        made[1].running_var.uniform_(0.5, 2)
    return made


CASES = {
    "mlp": (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1)), (5, 6)),
    "block": (Block(), (2, 6, 16)),
    "residual": (Residual(3), (2, 3, 5, 6)),
    "views": (Views(), (2, 4, 5)),
    "in place": (InPlace(), (3, 3)),
    "norms": (nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.SiLU()), (2, 4, 3, 5)),
    "pools": (
        nn.Sequential(nn.AvgPool2d(2), nn.Upsample(scale_factor=2), nn.AdaptiveAvgPool2d(1)),
        (2, 3, 8, 6),
    ),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 5, 4)),
    "lstm": (Recurrent("LSTM", num_layers=2, batch_first=True), (2, 3, 4)),
    "gru both ways": (Recurrent("GRU", bidirectional=True), (3, 2, 4)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True), (2, 5, 8)),
}


@pytest.mark.parametrize("name", CASES)
def test_modules_are_as_pytorch_has_them(name):
    torch.manual_seed(0)
    module, shape = CASES[name]
    checked(module, torch.randn(shape))


@pytest.mark.parametrize("sort", ["LSTM", "GRU", "RNN"])
def test_no_launch_ends_within_the_steps_of_a_recurrent_layer(sort):
    made = checked(Recurrent(sort, num_layers=2, bidirectional=True), torch.randn(3, 2, 4))
    layers = [s for s in partition(made.spec, {}, made.aliases).kernels() if recurrences(s)]
    assert layers and not [d for s in layers for d in launch_ends(s)]


@pytest.mark.parametrize("dim", [0, 1])
def test_each_layer_of_a_dense_block_reads_what_was_put_together_before(dim):
    def block(x):
        made = [x]
        for _ in range(7):
            made.append(torch.cat(made, dim).sum(dim, keepdim=True) * x)
        return torch.cat(made, dim)

    found = checked(block, torch.rand(3, 4))
    joins = [e for e in found.spec.equations if stem(e.target) == "cat"]
    assert len(joins) == 7 and max(len(e.sources()) for e in joins) == 4


def test_batch_norm_counts_and_keeps_its_statistics_while_it_trains():
    made = checked(batch_norm(), torch.randn(4, 3, 8, 8))
    paths = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert {m.target for m in made.mutations} == paths


def test_batch_norm_uses_its_statistics_after_training():
    made = checked(batch_norm().eval(), torch.randn(4, 3, 8, 8))
    assert not made.mutations and "1.running_var" in {h.path for h in made.held}


def test_a_recommender_gathers_from_its_tables():
    indices = [torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([6, 0, 0, 3])]
    offsets = [torch.tensor([0, 4, 5]), torch.tensor([0, 1, 3])]
    checked(Recommender(), torch.randn(3, 5), indices, offsets)


@pytest.mark.parametrize(
    ("module", "first", "second"),
    [
        (nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.LayerNorm(4)), (3, 6), (8, 6)),
        (batch_norm().eval(), (2, 3, 8, 8), (5, 3, 8, 8)),
        (Block(), (2, 6, 16), (3, 6, 16)),
    ],
)
def test_a_batch_may_stay_open(module, first, second):
    x = "x" if isinstance(module, Block) else "input"
    made = checked(
        module, torch.randn(first), calls=[(torch.randn(second),)], dynamic={x: {0: "B"}}
    )
    assert [s.name for s in made.sizes] == ["B"]


def test_a_length_may_stay_open():
    checked(
        Block(),
        torch.randn(2, 6, 16),
        calls=[(torch.randn(2, 9, 16),)],
        dynamic={"x": {1: "T"}},
    )


class Dropped(nn.Module):
    def forward(self, x):
        a = F.dropout(x, 0.25, self.training)
        return a, F.dropout(x, 0.25, self.training)


def test_dropout_draws_from_a_seed():
    module, x = Dropped(), torch.rand(40, 50) + 1
    made = checked(module.eval(), x)
    assert made.seed is None
    module.train()
    made, drawn = evaluated(module, x, seeds=(1, 1, 2))
    assert made.seed is not None
    for a, b in drawn:
        kept = a != 0
        assert 0.70 < kept.double().mean() < 0.80
        torch.testing.assert_close(a[kept], x.double()[kept] / 0.75)
        assert not torch.equal(a, b)
    assert torch.equal(drawn[0][0], drawn[1][0])
    assert not torch.equal(drawn[0][0], drawn[2][0])


def evaluated(module, x, seeds):
    made = imported(module, (x,))
    return made, [answer(made, module, (x.double(),), seed=s).result for s in seeds]
