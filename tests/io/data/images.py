#!/usr/bin/env python3
"""Writes images.tsv: small PNG and JPEG files, and what Pillow makes of them. Needs Pillow and NumPy.

A line holds a name, how the file is read (a mode of image_mode, or "upright"), the shape, the pixels (channels, height, width) and the
file, both in hexadecimal digits; without a file it is that of the line before. Lines whose way is "quality" are written: their file holds
planes of RGB or grey, from which Pillow wrote a JPEG of that quality and read the pixels. What Pillow cannot write, such as interlaced
files, is packed here.
"""
import base64
import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

random = np.random.default_rng(7)
lines = []


def planes(image):
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def put(name, way, array, data):
    array = np.ascontiguousarray(array, dtype=np.uint8)
    lines.append("\t".join([name, way, ",".join(map(str, array.shape)), array.tobytes().hex(), data.hex()]))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def packed_rows(samples, bits, first):
    """Rows of samples (height, width, channels), each with another filter."""
    height, width, channels = samples.shape
    size = max(1, channels * bits // 8)
    before, out = bytes((width * channels * bits + 7) // 8), b""
    for y in range(height):
        if bits == 16:
            row = samples[y].astype(">u2").tobytes()
        else:
            row = np.packbits(np.unpackbits(samples[y].reshape(-1, 1).astype(np.uint8), axis=1)[:, 8 - bits:].reshape(-1)).tobytes()
        kind = (y + first) % 5
        left = bytes(size) + row
        upper_left = bytes(size) + before
        filtered = []
        for i, value in enumerate(row):
            a, b, c = left[i], before[i], upper_left[i]
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            filtered.append((value - (0, a, b, (a + b) // 2, paeth)[kind]) % 256)
        out += bytes([kind]) + bytes(filtered)
        before = row
    return out


ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def png(samples, kind, bits, interlaced=False, before=b""):
    """The file of samples (height, width, channels); `before` are chunks in front of the pixels."""
    height, width, _ = samples.shape
    parts = [samples[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [samples]
    rows = b"".join(packed_rows(part, bits, i) for i, part in enumerate(parts) if part.size)
    body = zlib.compress(rows, 9)
    half = len(body) // 2  # pixels in two chunks
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))) + before +
            chunk(b"IDAT", body[:half]) + chunk(b"IDAT", body[half:]) + chunk(b"IEND", b""))


def put_png(name, data, modes=("unchanged", "gray", "gray_alpha", "rgb", "rgb_alpha")):
    image = Image.open(io.BytesIO(data))
    image.load()
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode == "I;16":
        transparency = image.info.get("transparency")
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        assert transparency is None
    colours = image.convert("RGBA")
    grey, alpha = colours.convert("RGB").convert("L"), colours.getchannel("A")
    made = {"unchanged": image, "gray": grey, "gray_alpha": Image.merge("LA", (grey, alpha)), "rgb": colours.convert("RGB"), "rgb_alpha": colours}
    if name == "grey_alpha16.png":  # which Pillow opens as RGBA
        made["unchanged"] = made["gray_alpha"]
    for mode in modes:
        put(name, mode, planes(made[mode]), data)
        data = b""


def samples(channels, bits, size=(6, 9)):
    return random.integers(0, 2**bits, (*size, channels))


grey, rgb, palette, grey_alpha, rgb_alpha = 0, 2, 3, 4, 6
for bits in (1, 2, 4, 8, 16):
    put_png(f"grey{bits}.png", png(samples(1, bits), grey, bits, interlaced=bits == 2), ("unchanged", "rgb_alpha"))
for bits in (8, 16):
    put_png(f"grey_alpha{bits}.png", png(samples(2, bits), grey_alpha, bits, interlaced=bits == 16))
    put_png(f"rgb{bits}.png", png(samples(3, bits), rgb, bits, interlaced=bits == 8))
    put_png(f"rgb_alpha{bits}.png", png(samples(4, bits), rgb_alpha, bits))
for bits in (1, 2, 4, 8):
    colours = chunk(b"PLTE", random.integers(0, 256, 3 * min(2**bits, 20), dtype=np.uint8).tobytes())
    indices = samples(1, bits) % 20
    put_png(f"palette{bits}.png", png(indices, palette, bits, interlaced=bits == 4, before=colours), ("unchanged", "gray", "rgb_alpha"))
    if bits in (2, 8):
        put_png(f"palette{bits}_alpha.png", png(indices, palette, bits, before=colours + chunk(b"tRNS", b"\x00\x80\xf0")))
few = random.integers(0, 3, (6, 9, 1)) * 100
put_png("grey_transparent.png", png(few, grey, 8, before=chunk(b"tRNS", struct.pack(">H", 100))))
put_png("rgb_transparent.png", png(few.repeat(3, 2), rgb, 8, before=chunk(b"tRNS", struct.pack(">3H", 100, 100, 100))))
# A gamma and a text change nothing; one pixel; one column, interlaced.
put_png("gamma.png", png(samples(3, 8), rgb, 8, before=chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"tEXt", b"a\0b")), ("unchanged", "gray"))
put_png("one.png", png(samples(3, 8, (1, 1)), rgb, 8), ("unchanged",))
put_png("column.png", png(samples(1, 8, (9, 1)), grey, 8, interlaced=True), ("unchanged",))
put_png("by_pillow.png", (lambda f: (Image.fromarray(samples(3, 8).astype(np.uint8)).save(f, "PNG"), f.getvalue())[1])(io.BytesIO()), ("unchanged",))


def smooth(height, width, channels):
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    return (127 + 100 * np.sin(x / 5 + c) * np.cos(y / 4 - c) + random.integers(-20, 21, (height, width, channels))).astype(np.uint8)


def jpeg(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def put_jpeg(name, data, modes=("unchanged", "gray", "rgb")):
    first = data
    for mode in modes:
        image = Image.open(io.BytesIO(first))
        if image.mode == "CMYK":
            image = image.convert("RGB")
            image = image.convert("L") if mode == "gray" else image
        elif mode == "gray":
            image.draft("L", image.size)
        elif mode != "unchanged":
            image = image.convert({"rgb": "RGB", "rgb_alpha": "RGBA", "gray_alpha": "LA"}[mode])
        put(name, mode, planes(image), data)
        data = b""


colourful, pale = Image.fromarray(smooth(11, 18, 3)), Image.fromarray(smooth(11, 18, 1)[:, :, 0])
put_jpeg("grey.jpg", jpeg(pale), ("unchanged", "rgb", "gray_alpha", "rgb_alpha"))
for sampling in ("4:4:4", "4:2:2", "4:2:0"):
    put_jpeg(f"{sampling.replace(':', '')}.jpg", jpeg(colourful, subsampling=sampling, quality=80))
put_jpeg("progressive.jpg", jpeg(colourful, progressive=True), ("unchanged", "gray", "rgb_alpha"))
put_jpeg("restarts.jpg", jpeg(colourful, restart_marker_blocks=1, quality=30), ("unchanged",))
put_jpeg("not_transformed.jpg", jpeg(colourful, keep_rgb=True, quality=50), ("unchanged", "gray"))
put_jpeg("inks.jpg", jpeg(colourful.convert("CMYK"), quality=90))
# By libjpeg, whose blue is sampled more finely than its luminance: 1 x 1, 2 x 1 and 1 x 2.
put_jpeg("odd_sampling.jpg", base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAoHBwgHBgoICAgLCgoLDhgQDg0NDh0VFhEYIx8lJCIfIiEmKzcvJik0KSEiMEExNDk7Pj4+JS5ESUM8SDc9Pjv/2wBDAQoLCw4NDhwQ
EBw7KCIoOzs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozs7Ozv/wAARCAALABIDAREAAiEBAxIB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQF
BgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNk
ZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEB
AQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZH
SElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oA
DAMBAAIRAxEAPwBylUk2gZXGcex7Vuvfn2a/K/8A9rqQryTktGv8r/dqZ7x9V+K/4A1pJrzNWOyj8pMqD8o71yVMy5JuHJtpv/wAOZtt3Zuj/9k="""), ("unchanged", "gray"))
small = Image.fromarray(smooth(5, 8, 1)[:, :, 0])
for orientation in range(1, 9):
    order, format = (">", b"MM\0*") if orientation % 2 else ("<", b"II*\0")
    tag = lambda number, value: struct.pack(order + "HHIHH", number, 3, 1, value, 0)
    exif = b"Exif\0\0" + format + struct.pack(order + "IH", 8, 2) + tag(0x100, 8) + tag(0x112, orientation) + bytes(4)
    data = jpeg(small, exif=exif, quality=40)
    put(f"orientation{orientation}.jpg", "upright", planes(ImageOps.exif_transpose(Image.open(io.BytesIO(data)))), data)
for quality, image in ((75, colourful), (20, colourful), (100, pale)):
    put(f"{quality}", "quality", planes(Image.open(io.BytesIO(jpeg(image, quality=quality)))), planes(image).tobytes())

Path(__file__).with_name("images.tsv").write_text("\n".join(lines) + "\n", encoding="ascii")
