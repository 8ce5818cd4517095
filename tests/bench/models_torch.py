# tests/bench/models_torch.py: the rival of models.cpp in PyTorch. Usage: models_torch.py THREADS NETWORK LAYOUT DEVICE
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models" / "reference"))
from networks import NETWORKS  # noqa: E402

threads, name, layout, device = sys.argv[1:]
torch.backends.cudnn.allow_tf32 = False  # ours computes in float
torch.backends.cudnn.benchmark = True
torch.set_num_threads(int(threads))
torch.manual_seed(1)
make, shape, classes, settings, batch = NETWORKS[name]
order = getattr(torch, f"{layout}_format" if layout == "contiguous" else layout)
network = make().to(device=device, memory_format=order)
optimizer = torch.optim.SGD(network.parameters(), fused=True, **settings)
x = torch.randn(batch, *shape).contiguous(memory_format=order).to(device)
labels = torch.randint(0, classes, (batch,)).to(device)
row = f"torch {name} {layout}"
print(f"{row}\t0\n", flush=True)
for line in sys.stdin:
    if line.rstrip("\n") != row:
        sys.exit(f"no row named '{line}'")
    begin = time.perf_counter()
    loss = F.cross_entropy(network(x), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    loss.item()
    print(f"{1e3 * (time.perf_counter() - begin):.4f}", flush=True)
