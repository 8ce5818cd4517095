# tests/bench/sequences_torch.py: the rows of sequences.cpp in PyTorch. Usage: sequences_torch.py THREADS
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from turns import serve

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models" / "reference"))
from networks import Gpt  # noqa: E402

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(1)


def attention(batch, causal):
    q, k, v = (torch.randn(batch, 8, 1024, 64, requires_grad=True) for _ in range(3))
    g = torch.randn(batch, 8, 1024, 64)

    def run():
        q.grad = k.grad = v.grad = None
        F.scaled_dot_product_attention(q, k, v, is_causal=causal).backward(g)

    return run


def lstm(packed):
    layers = torch.nn.LSTM(256, 256, 2)
    x = torch.randn(32, 128, 256, requires_grad=True)
    lengths = torch.tensor([1 + i * 37 % 32 for i in range(128)])
    g, of_elements = torch.randn(32, 128, 256), torch.randn(int(lengths.sum()), 256)

    def run():
        layers.zero_grad(set_to_none=True)
        x.grad = None
        if packed:
            layers(pack_padded_sequence(x, lengths, enforce_sorted=False))[0].data.backward(of_elements)
        else:
            layers(x)[0].backward(g)

    return run


def generating(**sizes):
    """Caches that are there from the beginning, as those of Sinter."""
    network = Gpt(**sizes).eval()
    first = network.h[0].attn
    heads, size = first.num_heads, first.head_dim

    @torch.inference_mode()
    def run():
        caches = [torch.empty(2, 1, heads, 128, size) for _ in network.h]
        token = torch.tensor([[1]])
        for position in range(100):
            x = network.wte(token) + network.wpe.weight[position]
            for block, cache in zip(network.h, caches):
                qkv = F.linear(block.ln_1(x), block.attn.in_proj_weight, block.attn.in_proj_bias).view(1, 1, 3, heads, size)
                q, k, v = qkv.permute(2, 0, 3, 1, 4)
                cache[0, :, :, position:position + 1], cache[1, :, :, position:position + 1] = k, v
                y = F.scaled_dot_product_attention(q, cache[0, :, :, :position + 1], cache[1, :, :, :position + 1])
                x = x + block.attn.out_proj(y.transpose(1, 2).reshape(1, 1, -1))
                x = x + block.mlp(block.ln_2(x))
            token = F.linear(network.ln_f(x), network.wte.weight).argmax(-1)

    return run


def table(sparse):
    words = torch.nn.Embedding(100_000, 256, sparse=sparse)
    optimizer = torch.optim.SGD(words.parameters(), lr=0.01)
    ids, g = torch.randint(0, 100_000, (4096,)), torch.randn(4096, 256)

    def run():
        optimizer.zero_grad()
        words(ids).backward(g)
        optimizer.step()

    return run


rows = {
    "attention, causal, T 1024, batch 1": attention(1, True),
    "attention, causal, T 1024, batch 16": attention(16, True),
    "attention, T 1024, batch 1": attention(1, False),
    "LSTM, 128 x 32": lstm(False),
    "LSTM, lengths 1 to 32": lstm(True),
    "100 tokens, GPT of 3 M parameters": generating(),
    "100 tokens, GPT of 50 M parameters": generating(layers=16, features=512),
    "step of a table of 100,000 rows": table(False),
    "step of a row-sparse table of 100,000 rows": table(True),
}
serve({name: (1, run) for name, run in rows.items()})
