"""Trains the network of net.cpp on arrays of NumPy."""
import numpy as np

import net

rng = np.random.default_rng(1)
arm = rng.integers(0, 2, 1000)
radius = np.sqrt(rng.random(1000))
angle = 9 * radius + np.pi * arm
points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32)

model = net.Net(width=32, seed=1)
print(f"loss {model.fit(points, arm, steps=300):.4f}")
scores = np.from_dlpack(model(points))  # the memory of the tensor
right = np.mean(scores.argmax(1) == arm)
print(f"{right:.3f} of the points are told apart")
assert right > 0.95

try:
    model.fit(points.astype(np.float64), arm)
except RuntimeError as error:
    print(f"refused: {error}")
