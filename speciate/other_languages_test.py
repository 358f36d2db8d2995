"""A kernel of a call that another backend than the first makes is searched for in its language."""

import torch

import speciate

X = torch.rand(3, 2, 8, generator=torch.Generator().manual_seed(5))


class Recurrent(torch.nn.Module):
    """Its steps run in one cooperative launch, which CUDA C++ has on this chip."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.layer = torch.nn.RNN(8, 8)

    def forward(self, x):
        return self.layer(x)[0]


def test_its_record_is_found_by_a_later_call(tmp_path):
    model, options = Recurrent().requires_grad_(False), {"target": "h200"}
    store, records = str(tmp_path / "runs.db"), tmp_path / "records"
    # One for each kernel of the call
    limits = {"evaluations": 1, "workers": 1, "quiet": True}
    found = speciate.evolve(model, (X,), store=store, records=records, **limits, **options)
    (folder,) = records.glob("*/h200.cuda")
    name = folder.parent.name
    assert found.sources[name] == (folder / "kernel.cu").read_text(encoding="utf-8")
    again = speciate.compile(model, (X,), records=records, **options)
    assert again.sources == found.sources
    torch.testing.assert_close(found(X), model(X), rtol=2e-3, atol=2e-3)  # TF32's
