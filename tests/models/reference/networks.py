"""The networks of examples/models in PyTorch: the same members under the same names, and the same optimizers."""
import torch
import torch.nn.functional as F
from torch import nn


class Fcn(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.fc1, self.fc2, self.fc3, self.fc4 = (nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        return self.fc4(torch.sigmoid(self.fc3(torch.sigmoid(self.fc2(torch.sigmoid(self.fc1(x)))))))


class AlexNetS(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, 11, stride=4, padding=2)
        self.conv2 = nn.Conv2d(96, 256, 5, padding=2)
        self.conv3 = nn.Conv2d(256, 384, 3, padding=1)
        self.conv4 = nn.Conv2d(384, 384, 3, padding=1)
        self.conv5 = nn.Conv2d(384, 256, 3, padding=1)
        self.fc6, self.fc7, self.fc8 = nn.Linear(9216, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 3, 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 3, 2)
        x = F.relu(self.conv4(F.relu(self.conv3(x))))
        x = F.max_pool2d(F.relu(self.conv5(x)), 3, 2)
        return self.fc8(F.relu(self.fc7(F.relu(self.fc6(x.flatten(1))))))


class AlexNetR(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 32, 5, padding=2)
        self.conv3 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc = nn.Linear(576, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 3, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 3, 2)
        x = F.avg_pool2d(F.relu(self.conv3(x)), 3, 2)
        return self.fc(x.flatten(1))


class Bottleneck(nn.Module):
    def __init__(self, channels, middle, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, middle, 1, bias=False), nn.BatchNorm2d(middle)
        self.conv2, self.bn2 = nn.Conv2d(middle, middle, 3, stride, 1, bias=False), nn.BatchNorm2d(middle)
        self.conv3, self.bn3 = nn.Conv2d(middle, 4 * middle, 1, bias=False), nn.BatchNorm2d(4 * middle)
        self.downsample = None
        if channels != 4 * middle or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels, 4 * middle, 1, stride, bias=False), nn.BatchNorm2d(4 * middle))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        channels = 64
        for number, (blocks, middle) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
            group = nn.Sequential()
            for i in range(blocks):
                group.append(Bottleneck(channels, middle, 2 if number > 1 and i == 0 else 1))
                channels = 4 * middle
            setattr(self, f"layer{number}", group)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.avg_pool2d(x, 7).flatten(1))


class CifarBlock(nn.Module):
    def __init__(self, channels, filters, stride, he):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=not he), nn.BatchNorm2d(filters)
        self.conv2, self.bn2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=not he), nn.BatchNorm2d(filters)
        self.he, self.more = he, filters - channels

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.more:
            before = self.more // 2 if self.he else 0
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, before, self.more - before))
        return F.relu(y + x) if self.he else y + x


class ResNetCifar(nn.Module):
    def __init__(self, depth, he):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=not he), nn.BatchNorm2d(16)
        n = (depth - 2) // 6

        def group(channels, filters, stride):
            blocks = [CifarBlock(channels, filters, stride, he)] + [CifarBlock(filters, filters, 1, he) for _ in range(n - 1)]
            return nn.Sequential(*blocks)

        self.layer1, self.layer2, self.layer3 = group(16, 16, 1), group(16, 32, 2), group(32, 64, 2)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(F.avg_pool2d(x, 8).flatten(1))


class WordLstm(nn.Module):
    """Words (T, N) => scores (T, N, vocabulary), and the state after the last."""
    largest_gradient = 5

    def __init__(self, vocabulary=10000, features=256, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)
        self.lstm = nn.LSTM(features, features, layers)
        self.head = nn.Linear(features, vocabulary)
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)

    def forward(self, words, state=None):
        output, state = self.lstm(self.embedding(words), state)
        return self.head(output), state


class GptMlp(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class GptBlock(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(features)
        self.attn = nn.MultiheadAttention(features, heads, batch_first=True)
        self.ln_2 = nn.LayerNorm(features)
        self.mlp = GptMlp(features)

    def forward(self, x):
        # The weights of the module, by scaled_dot_product_attention without its checks.
        n, t, features = x.shape
        all = F.linear(self.ln_1(x), self.attn.in_proj_weight, self.attn.in_proj_bias)
        q, k, v = all.view(n, t, 3, self.attn.num_heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn.out_proj(y.transpose(1, 2).reshape(n, t, features))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Tokens (N, T) => scores (N, T, vocabulary)."""
    def __init__(self, vocabulary=256, context=128, layers=4, heads=8, features=256):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, features), nn.Embedding(context, features)
        self.h = nn.ModuleList(GptBlock(features, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(features)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if name.endswith(("c_proj.weight", "out_proj.weight")) else 0.02)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


# Networks for sequences: how they are made, their words per sample, their vocabulary, their optimizer and its settings, their batch, and whether
# their state goes on, so that the steps come before the samples.
SEQUENCES = {
    "lstm": (WordLstm, 32, 10000, torch.optim.SGD, dict(lr=0.1), 128, True),
    "gpt": (Gpt, 128, 256, torch.optim.AdamW, dict(lr=3e-4), 16, False),
}

NETWORKS = {  # name: network, shape of a sample, classes, settings of SGD, batch of the benchmark
    "fcn_s": (lambda: Fcn(26752, 2048, 2048, 2048, 26752), (26752,), 26752, {"lr": 0.01}, 64),
    "alexnet_s": (AlexNetS, (3, 224, 224), 1000, {"lr": 0.01}, 16),
    "resnet50": (ResNet50, (3, 224, 224), 1000, {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": True}, 16),
    "fcn_r": (lambda: Fcn(784, 2048, 4096, 1024, 10), (784,), 10, {"lr": 0.05, "momentum": 0.9}, 1024),
    "alexnet_r": (AlexNetR, (3, 32, 32), 10, {"lr": 0.001, "momentum": 0.9}, 1024),
    "resnet56": (lambda: ResNetCifar(56, he=False), (3, 32, 32), 10,
                 {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": True}, 128),
    "resnet20": (lambda: ResNetCifar(20, he=True), (3, 32, 32), 10, {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}, 128),
}
