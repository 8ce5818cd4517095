# tests/bench/rival_torch.py: the same rows as elementwise.cpp and mlp.cpp, in PyTorch. Usage: rival_torch.py THREADS
import statistics
import sys
import time

import torch

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
torch.set_num_threads(threads)
torch.manual_seed(1)


def median_ms(repeats, f):
    f()
    f()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        f()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def report(name, ms):
    print(f"{name}\t{ms:.3f}\t0", flush=True)


with torch.no_grad():
    x = torch.randn(4096, 1024)
    gain, bias = torch.randn(1024), torch.randn(1024)
    report("torch softmax", median_ms(25, lambda: torch.softmax(x, 1)))
    report("torch layer_norm", median_ms(25, lambda: torch.nn.functional.layer_norm(x, (1024,), gain, bias)))
    a, b, c, d = (torch.randn(16 << 20) for _ in range(4))
    report("torch sigmoid(a*b+c)*tanh(d)", median_ms(5, lambda: torch.sigmoid(a * b + c) * torch.tanh(d)))


def mlp(batch):
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

    return median_ms(31 if batch <= 512 else 11, step)


for batch in (128, 1024):
    report(f"torch mlp batch {batch}", mlp(batch))
