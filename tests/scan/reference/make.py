"""Writes rows.csv: scans and sorts of short rows with their gradients, from PyTorch in float64.

A line is op;x;values;indices;gradient, each a list, the gradient under the seed cos(0.7 i) over the values. Indices are
left out where there are none or PyTorch does not say which of equals it takes."""

import pathlib

import torch

torch.manual_seed(3)
inf, nan = float("inf"), float("nan")
plain = [torch.randn(8, dtype=torch.float64) * 10.0**e for e in (-3, 0, 1, 3)]
ties = [torch.tensor(v, dtype=torch.float64) for v in ([1, 3, 3, 2, 3, 1, 5, 5], [0, -0.0, 2, 0, -1, 2, -0.0, 0], [2] * 8)]
zeros = [torch.tensor(v, dtype=torch.float64) for v in ([2, 3, 0, 4, 5, 0, 6, 7], [0, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 0])]
wild = [torch.tensor(v, dtype=torch.float64) for v in ([1, inf, 2, -inf, 3, inf, 0, 1], [3, nan, 2, 5, nan, 9, -inf, 0], [-inf, -inf, 1, 2, inf, nan, 0, 1])]
ops = {
    "cumsum": lambda v: (torch.cumsum(v, 0), None),
    "cumprod": lambda v: (torch.cumprod(v, 0), None),
    "logcumsumexp": lambda v: (torch.logcumsumexp(v, 0), None),
    "cummax": lambda v: torch.cummax(v, 0),
    "cummin": lambda v: torch.cummin(v, 0),
    "sort": lambda v: torch.sort(v, stable=True),
    "sort_descending": lambda v: torch.sort(v, stable=True, descending=True),
    "topk": lambda v: torch.topk(v, 3),
    "topk_smallest": lambda v: torch.topk(v, 3, largest=False),
}


def text(values):
    return ",".join(repr(float(v)) for v in values)


lines = []
for name, op in ops.items():
    for row in [*plain, *ties, *zeros, *wild]:
        v = row.clone().requires_grad_()
        y, indices = op(v)
        y.backward(torch.cos(0.7 * torch.arange(y.numel(), dtype=torch.float64)))
        ambiguous = name.startswith("topk") and len(set(row.tolist())) < 8
        finite = bool(row.isfinite().all())
        lines.append(";".join([name, text(row), text(y.detach()), "" if indices is None or ambiguous else text(indices),
                               text(v.grad) if finite and not ambiguous else ""]))
pathlib.Path(__file__).with_name("rows.csv").write_text("\n".join(lines) + "\n")
