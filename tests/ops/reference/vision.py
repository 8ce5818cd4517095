#!/usr/bin/env python3
"""Writes vision.csv: boxes and regions as torchvision has them, in double. Needs torchvision.

Box i of 60 is x1, y1 = 10 + 9 sin(1.3 i), 10 + 9 cos(2.1 i), x2, y2 = x1 + 5 + 4 sin(0.7 i), y1 + 5 + 4 cos(1.7 i), its score
sin(3.7 i), its class i % 3. Images are sin(0.37 i^2), (2,3,6,7). A line is a name and numbers:
  nms,threshold,of classes or not,indices...
  box_iou,of boxes 0 to 4 with 5 to 8...
  roi_align,scale,ratio,aligned,results...,gradient of their sum weighted by cos(0.7 i)...
"""
from pathlib import Path

import torch
from torchvision.ops import batched_nms, box_iou, nms, roi_align

i = torch.arange(60, dtype=torch.float64)
corner = torch.stack([10 + 9 * torch.sin(1.3 * i), 10 + 9 * torch.cos(2.1 * i)], 1)
boxes = torch.cat([corner, corner + torch.stack([5 + 4 * torch.sin(0.7 * i), 5 + 4 * torch.cos(1.7 * i)], 1)], 1)
scores, classes = torch.sin(3.7 * i), torch.arange(60) % 3
lines = []
for threshold in (0.1, 0.3, 0.6):
    lines.append(["nms", threshold, 0, *nms(boxes, scores, threshold).tolist()])
    lines.append(["nms", threshold, 1, *batched_nms(boxes, scores, classes, threshold).tolist()])
lines.append(["box_iou", *box_iou(boxes[:5], boxes[5:9]).flatten().tolist()])
# Inside, over the edges, outside, and of no size.
rois = torch.tensor([[0, 1, 1.5, 4.25, 5], [1, -3, 2, 3, 9.5], [1, 20, 20, 25, 22], [0, 2.3, 2.1, 2.4, 2.1]], dtype=torch.float64)
for scale, ratio, aligned in ((1, -1, False), (1, 2, True), (0.6, 3, False), (1.3, 0, True)):
    x = torch.sin(0.37 * torch.arange(252, dtype=torch.float64) ** 2).reshape(2, 3, 6, 7).requires_grad_()
    y = roi_align(x, rois, (3, 2), scale, ratio, aligned)
    (y.flatten() * torch.cos(0.7 * torch.arange(y.numel(), dtype=torch.float64))).sum().backward()
    lines.append(["roi_align", scale, ratio, int(aligned), *y.flatten().tolist(), *x.grad.flatten().tolist()])
rounded = ([f"{v:.13g}" if isinstance(v, float) else str(v) for v in line] for line in lines)
Path(__file__).with_name("vision.csv").write_text("\n".join(",".join(line) for line in rounded) + "\n")
