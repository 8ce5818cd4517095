#!/usr/bin/env python3
"""Writes augment.txt: an image and what torchvision makes of it. Needs torchvision.

A line is a name, its numbers, a colon, then the image (3, 4, 6) or the changed one.
"""
from pathlib import Path

import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

torch.manual_seed(4)
image = (torch.rand(3, 4, 6, dtype=torch.float64) * 100).round() / 100
image[:, 0, 0] = 0.5  # grey
image[:, 0, 1] = 0
image[0:2, 0, 2] = 0.9  # two channels alike
lines = []


def put(name, numbers, result):
    lines.append(" ".join([name, *map(repr, numbers), ":", *(repr(v) for v in result.flatten().tolist())]))


put("image", (), image)
for factor in (0.0, 0.5, 1.7):
    put("brightness", (factor,), F.adjust_brightness(image, factor))
    put("contrast", (factor,), F.adjust_contrast(image, factor))
    put("saturation", (factor,), F.adjust_saturation(image, factor))
for hue in (-0.5, -0.2, 0.0, 0.3, 0.5):
    put("hue", (hue,), F.adjust_hue(image, hue))
for angle, translate, scale, shear in ((90.0, (0, 0), 1.0, (0.0, 0.0)), (30.0, (1, -1), 1.3, (10.0, 0.0)), (-200.0, (0, 2), 0.7, (-20.0, 15.0)),
                                       (0.0, (-2, 0), 1.0, (0.0, 0.0))):
    for name, mode in (("nearest", InterpolationMode.NEAREST), ("bilinear", InterpolationMode.BILINEAR)):
        put(name, (angle, *translate, scale, *shear), F.affine(image, angle, list(translate), scale, list(shear), interpolation=mode))
Path(__file__).with_name("augment.txt").write_text("\n".join(lines) + "\n")
