# tests/gpu/rival_torch.py: the rows of bench.cu in PyTorch, eager and compiled.
# Usage: rival_torch.py [--cpu], which runs every row once on small tensors, to see that the script works.
import statistics
import sys
import time

import torch

trial = "--cpu" in sys.argv
device = torch.device("cpu" if trial else "cuda")
torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False


def median_ms(f, repeats=15):
    if trial:
        start = time.perf_counter()
        f()
        return (time.perf_counter() - start) * 1e3
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


def row(name, f):
    try:
        print(f"{name}\t{median_ms(f):.4f}\t0", flush=True)
    except Exception as error:
        print(f"{name} failed: {type(error).__name__}", flush=True)
        if trial:
            raise


def report(name, f, mode="default"):
    row(f"torch {name}", f)
    row(f"torch.compile {name}", torch.compile(f, mode=mode))


def randn(*shape):
    return torch.randn(*shape, device=device)


def formula(a, b, c, d):
    return torch.sigmoid(a * b + c) * torch.tanh(d)


n = 1 << 10 if trial else 64 << 20
with torch.no_grad():
    a, b, c, d = (randn(n) for _ in range(4))
    report("a+b", lambda: a + b)
    report("sigmoid(a*b+c)*tanh(d)", lambda: formula(a, b, c, d))
    report("sum(a*b)", lambda: (a * b).sum())
    report("sum(a)", lambda: a.sum())
    report("argmax(a)", lambda: torch.argmax(a))
    row("torch cumsum 64 M", lambda: torch.cumsum(a, 0))
    row("torch histc 256 of 64 M", lambda: torch.histc(a, 256, -4, 4))
    classes = torch.randint(0, 256, (n,), dtype=torch.int32, device=device)
    row("torch bincount 256 of 64 M", lambda: torch.bincount(classes))
    row("torch cumsum of int 64 M", lambda: torch.cumsum(classes, 0))
    del classes
leaves = [x.requires_grad_() for x in (a, b, c, d)]
seed = torch.ones(n, device=device)
for name, f in (("torch", formula), ("torch.compile", torch.compile(formula))):
    y = f(*leaves)
    row(f"{name} backward of it", lambda: torch.autograd.grad(y, leaves, seed, retain_graph=True))
del a, b, c, d, leaves, seed, y

rows, columns = (8, 64) if trial else (16384, 4096)
with torch.no_grad():
    x, gain, bias = randn(rows, columns), randn(columns), randn(columns)
    report("softmax 16384x4096", lambda: torch.softmax(x, 1))
    report("layer_norm 16384x4096", lambda: torch.nn.functional.layer_norm(x, (columns,), gain, bias))
    report("relu(x+bias) 16384x4096", lambda: torch.relu(x + bias))
    long_rows = x.reshape(rows // 16 or 1, -1)
    classes = torch.randint(0, long_rows.shape[1], (long_rows.shape[0],), device=device)
    report("softmax 1024x65536", lambda: torch.softmax(long_rows, 1))
    report("cross_entropy 1024x65536", lambda: torch.nn.functional.cross_entropy(long_rows, classes))
    for axis in (0, 1):
        report(f"sum(x,{axis}) 16384x4096", lambda: torch.sum(x, axis))
    report("argmax 16384x4096", lambda: torch.argmax(x, 1))
    row("torch cummax 16384x4096", lambda: torch.cummax(x, 1))
    row("torch topk 8 of 16384x4096", lambda: torch.topk(x, min(8, columns), 1))
    for lines in (1,) if trial else (1, 64):
        few = x[: 4 * lines].reshape(lines, -1)
        row(f"torch topk 8 of {lines}x16384", lambda: torch.topk(few, 8, 1))
    equal = torch.zeros(1, 4096, device=device)
    row("torch topk 8 of 4096 zeros", lambda: torch.topk(equal, 8, 1))
    flat = x[:4096].reshape(-1)
    row("torch sort 16 M", lambda: torch.sort(flat, stable=True))  # PyTorch's sort, topk and cumsum are CUB's and kernels of its own
    row("torch cumsum 16 M", lambda: torch.cumsum(flat, 0))
leaves = [leaf.requires_grad_() for leaf in (x, bias)]
seed = torch.ones_like(x)


def rectified(x, bias):
    return torch.relu(x + bias)


def softmax_of_rows(x):
    return torch.softmax(x, 1)


for name, f in (("torch", rectified), ("torch.compile", torch.compile(rectified))):
    y = f(*leaves)
    row(f"{name} backward of relu(x+bias)", lambda: torch.autograd.grad(y, leaves, seed, retain_graph=True))
for name, f in (("torch", softmax_of_rows), ("torch.compile", torch.compile(softmax_of_rows))):
    y = f(x)
    row(f"{name} backward of softmax", lambda: torch.autograd.grad(y, x, seed, retain_graph=True))
del x, leaves, seed, y


def resnet50_shapes():
    shapes = []

    def convolution(inputs, outputs, side):  # with the scale and shift of its batch norm
        shapes.extend([(outputs, inputs, side, side), (outputs,), (outputs,)])

    convolution(3, 64, 7)
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            convolution(inputs, width, 1)
            convolution(width, width, 3)
            convolution(width, 4 * width, 1)
            if block == 0:
                convolution(inputs, 4 * width, 1)
            inputs = 4 * width
    return shapes + [(1000, 2048), (1000,)]


parameters = [randn(*shape).requires_grad_() for shape in resnet50_shapes()]
assert sum(p.numel() for p in parameters) == 25557032
for p in parameters:
    p.grad = torch.randn_like(p)
for name, options in (("torch", {"foreach": True}), ("torch fused", {"fused": True})):
    row(f"{name} adamw resnet50", torch.optim.AdamW(parameters, lr=1e-3, **options).step)
compiled = torch.optim.AdamW(parameters, lr=1e-3, foreach=True, capturable=not trial)
row("torch.compile adamw resnet50", torch.compile(compiled.step))
del parameters, compiled

for batch in (2,) if trial else (128, 1024):
    sizes = [784, 2048, 2048, 2048, 10]
    layers = []
    for i in range(4):
        layers += [torch.nn.Linear(sizes[i], sizes[i + 1])] + ([torch.nn.ReLU()] if i < 3 else [])
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = randn(batch, 784), torch.randint(0, 10, (batch,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    row(f"torch mlp batch {batch}", step)
    loss_of = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(model(x), y), mode="reduce-overhead")
    optimizer_step = torch.compile(optimizer.step)

    def compiled_step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(inputs, labels).backward()
        optimizer_step()

    row(f"torch.compile mlp batch {batch} captured", compiled_step)
    if trial:
        continue
    # The whole step as one CUDA graph, as capture() makes one.
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(warm)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    row(f"torch mlp batch {batch} captured", graph.replay)
