#!/usr/bin/env python3
"""Lets TensorBoard read what tests/train/summary_writer_test.cpp writes. Needs tensorboard; exit code 77 without it.

    python3 tests/train/reference/tensorboard.py build/default/tests/train_tests
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path = [place for place in sys.path if Path(place).resolve() != HERE]  # this file has the name of the package


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the tests of the room train")
    program = parser.parse_args().program
    try:
        import tensorboard
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as missing:
        print(f"tensorboard: skipped: {missing}; python3 -m pip install tensorboard")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "TensorBoard finds*"], check=True, env=os.environ | {"SINTER_EVENTS": folder}, stdout=subprocess.DEVNULL)
        everything = {kind: 0 for kind in ("scalars", "tensors", "histograms", "images")}
        read = EventAccumulator(folder, size_guidance=everything).Reload()
        tags = {kind: read.Tags()[kind] for kind in everything}
        print(f"TensorBoard {tensorboard.__version__} finds", tags)
        assert tags == {"scalars": ["loss/train"], "tensors": ["note/text_summary"], "histograms": ["weights"], "images": ["grey", "red"]}

        scalars = read.Scalars("loss/train")
        print("scalars:", [(s.step, s.value) for s in scalars])
        assert [s.step for s in scalars] == [0, 300, 2**63 - 1]
        assert scalars[0].value == 0.75 and math.isclose(scalars[1].value, 0.1, rel_tol=1e-7) and scalars[2].value == -math.inf

        (note,) = read.Tensors("note/text_summary")
        print("text:", note.step, note.tensor_proto.string_val[0])
        assert note.tensor_proto.string_val[0].decode() == "# Gr\u00f6\u00dfe\n\nsmall"

        (weights,) = read.Histograms("weights")
        h = weights.histogram_value
        print("histogram:", weights.step, h.min, h.max, h.num, h.sum, h.sum_squares, "in", len(h.bucket), "bins")
        assert (weights.step, h.min, h.max, h.num, h.sum, h.sum_squares) == (7, -2, 1, 5, 0, 5.5)
        assert sum(h.bucket) == 5 and len(h.bucket) == len(h.bucket_limit)

        for tag, step, height, width in (("grey", 1, 3, 2), ("red", 2, 1, 2)):
            (image,) = read.Images(tag)
            print("image:", image.step, image.width, "x", image.height, len(image.encoded_image_string), "bytes")
            assert (image.step, image.height, image.width) == (step, height, width)
            assert image.encoded_image_string.startswith(b"\x89PNG\r\n\x1a\n")

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "each writer has a file of its own*"], check=True, env=os.environ | {"SINTER_EVENTS": folder},
                       stdout=subprocess.DEVNULL)
        steps = [s.step for s in EventAccumulator(folder).Reload().Scalars("x")]
        print("a run that goes on from step 12 after one of 14:", steps)
        assert steps == [10, 11, 12, 13]


if __name__ == "__main__":
    main()
