#!/usr/bin/env python3
"""Writes image_folder.txt: an image (3, 9, 14), and what Pillow's bilinear filter makes of it in other sizes. Needs Pillow and NumPy.

A line is height and width, a colon, then the pixels (3, height, width).
"""
from pathlib import Path

import numpy as np
from PIL import Image

y, x, c = np.mgrid[0:9, 0:14, 0:3]
image = Image.fromarray(((x * 37 + y * 61 + c * 90) * (1 + y % 3) % 256).astype(np.uint8))
lines = []
for height, width in ((9, 14), (4, 6), (9, 5), (20, 17), (1, 1)):
    pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    lines.append(f"{height} {width} : " + " ".join(map(str, pixels.flatten())))
Path(__file__).with_name("image_folder.txt").write_text("\n".join(lines) + "\n")
