#!/usr/bin/env python3
"""Trains the network of 11_onnx with PyTorch and exports it: writes examples/data/digits.onnx, and beside it what PyTorch makes of ten
digits, digits_scores.npy. Every fifth line of digits.csv is for testing. Needs torch, onnx and numpy; takes a minute.

The header and the weights in examples/models are made of it by
  python3 cmake/onnx_to_sinter.py examples/data/digits.onnx --name digits_cnn --out examples/models
"""
from pathlib import Path

import numpy as np
import torch
from torch import nn

DATA = Path(__file__).resolve().parents[1] / "data"


class DigitsCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = nn.functional.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table = np.loadtxt(DATA / "digits.csv", delimiter=",", dtype=np.float32)
    x, y = torch.from_numpy(table[:, :64].reshape(-1, 1, 8, 8) / 16), torch.from_numpy(table[:, 64].astype(np.int64))
    test = torch.arange(len(x)) % 5 == 0
    model = DigitsCnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(12):
        for batch in torch.randperm(int((~test).sum())).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[~test][batch]), y[~test][batch]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print("right of the test digits:", float((model(x[test]).argmax(1) == y[test]).float().mean()))
        np.save(DATA / "digits_scores.npy", model(x[test][:10]).numpy())
    # Without folding, so that the batch norms stay what they are and can be trained.
    torch.onnx.export(model, x[:2], DATA / "digits.onnx", dynamo=False, opset_version=17, input_names=["x"], output_names=["scores"],
                      dynamic_axes={"x": {0: "n"}, "scores": {0: "n"}}, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)


if __name__ == "__main__":
    main()
