"""Models of PyTorch with random weights, small but of the whole architecture: MODELS maps a name to a function that gives the
module and its inputs, of a batch of 3. Those of torchvision and transformers are left out where the packages are."""
import argparse
import contextlib
import logging
import math
import tempfile
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


class UNet(nn.Module):
    """Two levels; up by a transposed convolution or by interpolation."""

    def __init__(self, up="transposed", width=8):
        super().__init__()
        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
        def upwards(inputs, outputs):
            if up == "transposed":
                return nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
            return nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=up == "corners"), nn.Conv2d(inputs, outputs, 1))
        self.down = nn.ModuleList([block(3, width), block(width, 2 * width)])
        self.middle = block(2 * width, 4 * width)
        self.up = nn.ModuleList([upwards(4 * width, 2 * width), upwards(2 * width, width)])
        self.join = nn.ModuleList([block(4 * width, 2 * width), block(2 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            side = kept.pop()
            x = join(torch.cat([side, self.enlarged(up(x), side)], 1))
        return self.last(x)

    def enlarged(self, x, side):
        """What up gave, as large as `side`."""
        return x


class SizedUNet(UNet):
    """Up to the size of what is joined, whatever it is."""

    def __init__(self):
        super().__init__()
        self.up = nn.ModuleList([nn.Conv2d(32, 16, 1), nn.Conv2d(16, 8, 1)])

    def enlarged(self, x, side):
        return F.interpolate(x, size=side.shape[2:], mode="bilinear", align_corners=False)


class Encoder(nn.Module):
    """A BERT of nn.TransformerEncoderLayer: words, positions, a mask of padding."""

    def __init__(self, width=32, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(50, width), nn.Embedding(16, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.pooler = nn.Linear(width, width)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)))
        x = self.layers(x, src_key_padding_mask=mask == 0)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.mlp(self.ln2(x))


class Decoder(nn.Module):
    """A GPT-2 of scaled_dot_product_attention, whose last layer has the weight of the first."""

    def __init__(self, width=32, layers=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, width), nn.Embedding(16, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        return self.norm(self.blocks(x)) @ self.wte.weight.T


class Seq2Seq(nn.Module):
    """nn.MultiheadAttention between two sequences, with its weights as a result."""

    def __init__(self, width=16):
        super().__init__()
        self.attend = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x, memory):
        return self.attend(x, memory, memory)


class Tagger(nn.Module):
    """An LSTM in both directions and two layers, and a GRU."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.lstm = nn.LSTM(12, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(20, 8, batch_first=True)

    def forward(self, ids):
        x, _ = self.lstm(self.words(ids))
        y, last = self.gru(x)
        return y, last


class Scaled(nn.Module):
    """Parameters of one element: a factor of each branch, a temperature, the power of a mean."""

    def __init__(self, width=8):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.scale, self.temperature, self.p = nn.Parameter(torch.ones(1)), nn.Parameter(torch.tensor(0.5)), nn.Parameter(3 * torch.ones(1))
        self.act = nn.PReLU()

    def forward(self, x):
        x = x + self.scale * self.act(self.first(x))
        pooled = x.clamp(min=0.1).pow(self.p).mean(1).pow(1 / self.p)
        return torch.softmax(self.second(pooled) * self.temperature.exp(), -1)


def image(side):
    return torch.randn(3, 3, side, side)


def words(length=12):
    return torch.randint(0, 50, (3, length))


def padding(length=12):
    return (torch.arange(length) < torch.tensor([[length], [7], [3]])).long()


class Only(nn.Module):
    """The part of what a model of transformers gives that is a tensor."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, ids, mask):
        out = self.model(input_ids=ids, attention_mask=mask)
        return tuple(getattr(out, name) for name in self.names)


MODELS = {
    "unet": lambda: (UNet(), [image(32)]),
    "unet_bilinear": lambda: (UNet("bilinear"), [image(32)]),
    "unet_corners": lambda: (UNet("corners"), [image(32)]),
    "unet_sized": lambda: (SizedUNet(), [image(36)]),
    "encoder": lambda: (Encoder(), [words(), padding()]),
    "decoder": lambda: (Decoder(), [words()]),
    "multihead": lambda: (Seq2Seq(), [torch.randn(3, 5, 16), torch.randn(3, 7, 16)]),
    "scaled": lambda: (Scaled(), [torch.randn(3, 5, 8)]),
    "tagger": lambda: (Tagger(), [words()]),
}

try:
    import torchvision.models as vision

    def vgg11_bn():
        model = vision.vgg11_bn(weights=None)
        model.classifier = nn.Sequential(nn.Linear(512 * 49, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))  # the rest is 475 MB
        return model, [image(224)]

    MODELS |= {
        "resnet18": lambda: (vision.resnet18(weights=None), [image(64)]),
        "mobilenet_v3_small": lambda: (vision.mobilenet_v3_small(weights=None), [image(64)]),
        "vgg11_bn": vgg11_bn,
        "efficientnet_b0": lambda: (vision.efficientnet_b0(weights=None), [image(64)]),
        "densenet121": lambda: (vision.densenet121(weights=None), [image(64)]),
        "vit": lambda: (vision.VisionTransformer(image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128), [image(64)]),
        "swin": lambda: (vision.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10), [image(64)]),
        "convnext": lambda: (vision.ConvNeXt([vision.convnext.CNBlockConfig(16, 32, 1), vision.convnext.CNBlockConfig(32, None, 1)], num_classes=10),
                             [image(64)]),
    }
except ImportError:
    pass

try:
    import transformers as hf

    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 50, "max_position_embeddings": 16}
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 50, "n_positions": 16}
    for kind in ("sdpa", "eager"):
        MODELS |= {
            f"bert_{kind}": lambda kind=kind: (Only(hf.BertModel(hf.BertConfig(**small, attn_implementation=kind)), "last_hidden_state", "pooler_output"),
                                               [words(), padding()]),
            f"gpt2_{kind}": lambda kind=kind: (Only(hf.GPT2LMHeadModel(hf.GPT2Config(**gpt2, use_cache=False, attn_implementation=kind)), "logits"), [words(), padding()]),
        }
except ImportError:
    pass


@contextlib.contextmanager
def run(description, default, *more):
    """The options of a script over these models, and the folder where its files go. Options in `more` are (flag, keywords)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--flags", default="", help="for the compiler")
    parser.add_argument("--folder", type=Path, help="where the files stay (default: nowhere)")
    parser.add_argument("--exporter", choices=["torchscript", "dynamo"], action="append", help="default: both")
    for flag, keywords in more:
        parser.add_argument(flag, **keywords)
    parser.add_argument("names", nargs="*", metavar="NAME", default=default, help=f"default: {', '.join(default)}")
    options = parser.parse_args()
    options.exporter = options.exporter or ["torchscript", "dynamo"]
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    with contextlib.ExitStack() as stack:
        yield options, options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))


def make(name):
    """(module, inputs), the same each time: no two parameters are equal as a fresh norm's are, and running moments are those of a batch."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    with torch.no_grad():
        for p in model.parameters():
            p += (0.1 if p.dim() <= 1 else 0.01) * torch.randn_like(p)
        model.train()
        for _ in range(20 if any("running_mean" in key for key in model.state_dict()) else 0):
            model(*inputs)
    return model.eval(), inputs


def export(model, inputs, path, dynamo, opset=18, **options):
    """Writes an ONNX file whose batch stays open."""
    names = [f"x{i}" for i in range(len(inputs))]
    if dynamo:
        batch = torch.export.Dim("n", min=1, max=64)
        torch.onnx.export(model, tuple(inputs), path, input_names=names, dynamo=True, opset_version=opset, verbose=False, external_data=False,
                          dynamic_shapes=tuple({0: batch} for _ in inputs), **options)
    else:
        torch.onnx.export(model, tuple(inputs), path, input_names=names, dynamo=False, opset_version=opset,
                          dynamic_axes={name: {0: "n"} for name in names}, **options)
