#!/usr/bin/env python3
"""Writes sampler.txt: what torch.utils.data.DistributedSampler gives each rank, without shuffling. Needs torch.

A line is: samples, ranks, rank, drop_last, then the indices.
"""
from pathlib import Path

from torch.utils.data import DistributedSampler

lines = []
for samples in (1, 2, 3, 7, 8, 13):
    for ranks in (1, 2, 3, 4, 5):
        for drop_last in (False, True):
            for rank in range(ranks):
                sampler = DistributedSampler(range(samples), ranks, rank, shuffle=False, drop_last=drop_last)
                lines.append(" ".join(map(str, (samples, ranks, rank, int(drop_last), *sampler))))
Path(__file__).with_name("sampler.txt").write_text("\n".join(lines) + "\n")
