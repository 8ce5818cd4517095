# tests/gpu/rival_torch.py: the rows of bench.cu in PyTorch, eager and compiled.
import statistics

import torch

gpu = torch.device("cuda")
torch.manual_seed(1)


def median_ms(f, repeats=15):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for i in range(repeats + 3):
        begin.record()
        f()
        end.record()
        end.synchronize()
        if i > 2:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def report(name, f):
    print(f"torch {name}\t{median_ms(f):.4f}\t0", flush=True)
    try:
        print(f"torch.compile {name}\t{median_ms(torch.compile(f)):.4f}\t0", flush=True)
    except Exception as error:
        print(f"torch.compile {name} failed: {type(error).__name__}", flush=True)


n = 64 << 20
with torch.no_grad():
    a, b, c, d = (torch.randn(n, device=gpu) for _ in range(4))
    report("a+b", lambda: a + b)
    report("sigmoid(a*b+c)*tanh(d)", lambda: torch.sigmoid(a * b + c) * torch.tanh(d))
    report("sum(a*b)", lambda: (a * b).sum())
    del a, b, c, d
    x = torch.randn(16384, 4096, device=gpu)
    gain, bias = torch.randn(4096, device=gpu), torch.randn(4096, device=gpu)
    report("softmax 16384x4096", lambda: torch.softmax(x, 1))
    report("layer_norm 16384x4096", lambda: torch.nn.functional.layer_norm(x, (4096,), gain, bias))
    del x
torch.backends.cuda.matmul.allow_tf32 = False
for batch in (128, 1024):
    sizes = [784, 2048, 2048, 2048, 10]
    layers = []
    for i in range(4):
        layers += [torch.nn.Linear(sizes[i], sizes[i + 1])] + ([torch.nn.ReLU()] if i < 3 else [])
    model = torch.nn.Sequential(*layers).to(gpu)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(batch, 784, device=gpu), torch.randint(0, 10, (batch,), device=gpu)

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    report(f"mlp batch {batch}", step)
