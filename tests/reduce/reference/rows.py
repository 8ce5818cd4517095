"""Writes rows.csv: reductions and row-wise ops of 24 rows with their gradients, from PyTorch in float64.

A line is one row: its label, then 9 logits, then for each op below its values and its gradient under the seed
cos(0.7 i) over the values of that row."""

import pathlib

import torch

torch.manual_seed(7)
x = torch.randn(24, 9, dtype=torch.float64) * torch.logspace(-2, 4, 24, dtype=torch.float64)[:, None]
x[3, 4] = x[3].max()  # ties and zeros
x[5, 2] = x[5, 7] = 0
labels = torch.randint(0, 9, (24,))
ops = [
    lambda v, l: torch.softmax(v, 0),
    lambda v, l: torch.log_softmax(v, 0),
    lambda v, l: torch.logsumexp(v, 0),
    lambda v, l: torch.nn.functional.cross_entropy(v[None], l[None]),
    lambda v, l: v.var(0),
    lambda v, l: v.norm(),
    lambda v, l: v.prod(0),
    lambda v, l: v.amax(0),
    lambda v, l: torch.nn.functional.layer_norm(v, (9,), torch.cos(v.new_tensor(range(9))), torch.sin(v.new_tensor(range(9)))),
    lambda v, l: torch.nn.functional.rms_norm(v, (9,), torch.cos(v.new_tensor(range(9))), 1e-6),
]
lines = []
for row, label in zip(x, labels):
    fields = [str(int(label))] + [repr(float(v)) for v in row]
    for op in ops:
        v = row.clone().requires_grad_()
        y = op(v, label)
        y.backward(torch.cos(0.7 * torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape))
        fields += [repr(float(e)) for e in y.detach().reshape(-1)] + [repr(float(e)) for e in v.grad]
    lines.append(",".join(fields))
pathlib.Path(__file__).with_suffix(".csv").write_text("\n".join(lines) + "\n")
