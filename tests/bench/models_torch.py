# tests/bench/models_torch.py: the rival of models.cpp in PyTorch. Usage: models_torch.py THREADS NETWORK LAYOUT DEVICE
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from turns import serve

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models" / "reference"))
from networks import NETWORKS, SEQUENCES  # noqa: E402

threads, name, layout, device = sys.argv[1:]
torch.backends.cudnn.allow_tf32 = False  # ours computes in float
torch.backends.cudnn.benchmark = True
torch.set_num_threads(int(threads))
torch.manual_seed(1)


def pictures():
    """The loss of a step on pictures or vectors, and the optimizer."""
    make, shape, classes, settings, batch = NETWORKS[name]
    order = getattr(torch, f"{layout}_format" if layout == "contiguous" else layout)
    network = make().to(device=device, memory_format=order)
    x = torch.randn(batch, *shape).contiguous(memory_format=order).to(device)
    labels = torch.randint(0, classes, (batch,)).to(device)
    return network, lambda: F.cross_entropy(network(x), labels), torch.optim.SGD(network.parameters(), fused=True, **settings)


def sequences():
    """The same on words; the state of a network that has one goes on."""
    make, steps, vocabulary, optimizer, settings, batch, has_state = SEQUENCES[name]
    network = make().to(device)
    shape = (steps, batch) if has_state else (batch, steps)
    words, following = (torch.randint(0, vocabulary, shape).to(device) for _ in range(2))
    state = None

    def loss():
        nonlocal state
        if has_state:
            scores, after = network(words, state)
            state = tuple(part.detach() for part in after)
        else:
            scores = network(words)
        return F.cross_entropy(scores.flatten(0, 1), following.flatten())

    return network, loss, optimizer(network.parameters(), fused=True, **settings)


network, loss_of_step, optimizer = (sequences if name in SEQUENCES else pictures)()

def step():
    loss = loss_of_step()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    if hasattr(network, "largest_gradient"):
        torch.nn.utils.clip_grad_norm_(network.parameters(), network.largest_gradient)
    optimizer.step()
    loss.item()


serve({f"torch {name} {layout}": (1, step)})
