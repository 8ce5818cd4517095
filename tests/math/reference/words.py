#!/usr/bin/env python3
"""Writes words.csv: word, x, word(x) for float32 x, the value computed in 50 digits and rounded to float64 (needs mpmath)."""
import random
import struct
from pathlib import Path

import mpmath as mp

mp.mp.dps = 50
WORDS = {
    "exp": (mp.exp, -100, 88), "exp2": (lambda x: mp.mpf(2) ** x, -140, 127), "expm1": (mp.expm1, -20, 88),
    "log": (mp.log, 1e-30, 1e30), "log2": (lambda x: mp.log(x, 2), 1e-30, 1e30), "log10": (mp.log10, 1e-30, 1e30),
    "log1p": (mp.log1p, -0.999, 1e6), "tanh": (mp.tanh, -10, 10), "erf": (mp.erf, -4, 4), "erfc": (mp.erfc, -4, 9),
    "sin": (mp.sin, -1e5, 1e5), "cos": (mp.cos, -1e5, 1e5), "tan": (mp.tan, -1e4, 1e4), "sqrt": (mp.sqrt, 0, 1e10),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), -1e5, 1e5), "atan": (mp.atan, -50, 50),
}

random.seed(20)
lines = ["word,x,value"]
for name, (f, low, high) in WORDS.items():
    for i in range(24):
        # Half of the points evenly over the range, half near zero where zero is in it.
        x = random.uniform(low, high) * (1 if i % 2 or low > 0 else 10.0 ** -random.randint(1, 8))
        x = 2.0 ** random.uniform(-99, 99) if low == 1e-30 and i % 2 else x
        x = struct.unpack("f", struct.pack("f", x))[0]
        lines.append(f"{name},{x.hex()},{float(f(mp.mpf(x))).hex()}")
Path(__file__).with_name("words.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
