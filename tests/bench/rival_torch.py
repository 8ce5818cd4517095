# tests/bench/rival_torch.py: rows of elementwise.cpp and mlp.cpp in PyTorch, for turns.py. Usage: rival_torch.py THREADS
import sys

import torch

from turns import serve

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
torch.manual_seed(1)


def without_gradients(f):
    def run():
        with torch.no_grad():
            f()

    return run


def step_of_mlp(batch):
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(),
        torch.nn.Linear(2048, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(batch, 784)
    labels = torch.randint(0, 10, (batch,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


x, gain, bias = torch.randn(4096, 1024), torch.randn(1024), torch.randn(1024)
a, b, c, d = (torch.randn(16 << 20) for _ in range(4))
square, order = a.reshape(4096, 4096), torch.randperm(4096)
rows = {  # name: runs in a turn, what is timed
    "torch softmax": (15, without_gradients(lambda: torch.softmax(x, 1))),
    "torch layer_norm": (15, without_gradients(lambda: torch.nn.functional.layer_norm(x, (1024,), gain, bias))),
    "torch transposed copy": (3, without_gradients(lambda: square.T.contiguous())),
    "torch index_select": (3, without_gradients(lambda: torch.index_select(square, 0, order))),
    "torch argmax of rows": (3, without_gradients(lambda: square.argmax(1))),
    "torch formula": (3, without_gradients(lambda: torch.sigmoid(a * b + c) * torch.tanh(d))),
    "torch mlp batch 128": (5, step_of_mlp(128)),
    "torch mlp batch 1024": (1, step_of_mlp(1024)),
}
serve(rows)
