#!/usr/bin/env python3
"""Trains the network of 08_chars in PyTorch on the same text, with the same steps, and prints the validation loss of each seed and their mean,
which 08_chars.cpp holds as its default --mark. Needs torch."""
import sys
from pathlib import Path

import torch
from torch import nn

HIDDEN, EMBEDDING, BATCH, STEPS, EPOCHS, LR, CLIP = 256, 64, 32, 64, 12, 3e-3, 1.0


class Network(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embedding = nn.Embedding(letters, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN)
        self.scores = nn.Linear(HIDDEN, letters)

    def forward(self, ids, state):
        output, state = self.lstm(self.embedding(ids), state)
        return self.scores(output), state


def streams(ids, batch):
    """The text as `batch` columns, each a part of it."""
    length = (len(ids) - 1) // batch
    return ids[:length * batch].view(batch, length).t(), ids[1:length * batch + 1].view(batch, length).t()


def loss_of(network, inputs, targets, optimizer=None):
    state, total, count = None, 0.0, 0
    for t in range(0, len(inputs), STEPS):
        x, y = inputs[t:t + STEPS], targets[t:t + STEPS]
        scores, state = network(x, state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimizer.step()
        total, count = total + loss.item() * y.numel(), count + y.numel()
    return total / count


def main():
    text = (Path(__file__).resolve().parent.parent / "data/shakespeare.txt").read_text(encoding="utf-8")
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text])
    held_out = len(ids) // 10
    training, validation = ids[:-held_out], ids[-held_out:]
    losses = []
    for seed in 1, 2, 3:
        torch.manual_seed(seed)
        network = Network(len(letters))
        optimizer = torch.optim.Adam(network.parameters(), lr=LR)
        for epoch in range(EPOCHS):
            loss = loss_of(network, *streams(training, BATCH), optimizer)
            with torch.no_grad():
                last = loss_of(network, *streams(validation, 8))
            print(f"seed {seed}, epoch {epoch + 1}: training loss {loss:.4f}, validation loss {last:.4f}", file=sys.stderr)
        losses.append(last)
        print(f"seed {seed}: {last:.4f}")
    print(f"mean: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
