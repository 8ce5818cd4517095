"""Turns models of ONNX into C++ of Sinter. See ../onnx_to_sinter.py and docs/pretrained.md."""
