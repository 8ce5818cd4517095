#!/usr/bin/env python3
"""Writes formats.tsv: small safetensors and .npy files, whole and hostile, and what reading each must give.

A line holds the name, the expected text and the bytes in hexadecimal digits. The text is "ok" and the tensors, or a part
of the message that refuses the file. Most hostile safetensors files follow the tests of the reference implementation,
https://github.com/huggingface/safetensors; all bytes are made here.
"""
import struct
from pathlib import Path

cases = []


def safetensors(name, expected, header, data=b"", length=None):
    header = header.encode() if isinstance(header, str) else header
    length = len(header) if length is None else length
    cases.append((name + ".safetensors", expected, struct.pack("<Q", length) + header + data))


def info(begin, end, dtype="I32", shape="[2,2]", more=""):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]{more}}}'


def tensor(*arguments, **named):
    return '{"t":' + info(*arguments, **named) + "}"


four = struct.pack("<4i", 1, -2, 3, 2147483647)
safetensors("matrix", "ok t I32 [2,2] = 1 -2 3 2147483647", tensor(0, 16), four)
safetensors("scalar", "ok t F32 [] = -0.5", tensor(0, 4, "F32", "[]"), struct.pack("<f", -0.5))
safetensors("no_elements", "ok t I32 [2,0] empty", tensor(0, 0, shape="[2,0]"))
safetensors("no_elements_of_large_extents", "ok t F32 [4294967296,4294967296,0] empty",
            tensor(0, 0, "F32", "[4294967296,4294967296,0]"))
safetensors("no_tensors", "ok, no tensors", "{}\r \t\n")
safetensors("only_metadata", "ok, no tensors", '{"__metadata__":{"a":"\\ud83d\\ude00\\n","b":""}}')
safetensors("any_order", "ok b F16 [1] = 1.5; a U8 [3] = 1 2 3; c U64 [1] = 18446744073709551615",
            '{ "b" : ' + info(3, 5, "F16", "[1]") + ', "a":' + info(0, 3, "U8", "[ 3 ]") + ',"__metadata__":{},"c":' +
            info(5, 13, "U64", "[1]") + "}", b"\1\2\3" + struct.pack("<eQ", 1.5, 2**64 - 1))
safetensors("every_type", "ok a BOOL [2] = false true; b I8 [1] = -1; c I16 [1] = -2; d U16 [1] = 65535; e BF16 [1] = 1; "
            "f U32 [1] = 4294967295; g F64 [1] = 0.1; h I64 [1] = -3; i F8_E4M3 [2] other; j F4 [4] other; k C64 [1] other",
            '{"a":' + info(0, 2, "BOOL", "[2]") + ',"b":' + info(2, 3, "I8", "[1]") + ',"c":' + info(3, 5, "I16", "[1]") +
            ',"d":' + info(5, 7, "U16", "[1]") + ',"e":' + info(7, 9, "BF16", "[1]") + ',"f":' + info(9, 13, "U32", "[1]") +
            ',"g":' + info(13, 21, "F64", "[1]") + ',"h":' + info(21, 29, "I64", "[1]") + ',"i":' +
            info(29, 31, "F8_E4M3", "[2]") + ',"j":' + info(31, 33, "F4", "[4]") + ',"k":' + info(33, 41, "C64", "[1]") + "}",
            struct.pack("<BBbhHHIdq", 0, 7, -1, -2, 65535, 0x3f80, 2**32 - 1, 0.1, -3) + bytes(12))
safetensors("unknown_member", "ok t I32 [1] = 5",
            tensor(0, 4, shape="[1]", more=',"x":[{"y":null},-1.5e+3,"\\u0041",true]'), struct.pack("<i", 5))

cases.append(("empty.safetensors", "has 0 bytes, too few for the length of a header", b""))
safetensors("length_of_format", "claims a header of 100000001 bytes, but the format allows 100000000", "{}", length=100000001)
safetensors("length_of_file", "claims a header of 100000000 bytes, but 2 follow; it is cut short", "{}", length=100000000)
safetensors("length_negative", "claims a header of 18446744073709551615 bytes", "{}", length=2**64 - 1)
safetensors("header_empty", "a header begins with '{'", "")
safetensors("header_blank_first", "a header begins with '{'", " {}")
safetensors("header_array", "a header begins with '{'", "[]")
safetensors("header_not_utf8", "header, byte 2: not UTF-8", b'{"\xff":1}')
safetensors("header_overlong", "not UTF-8", b'{"\xc0\x80":1}')
safetensors("header_surrogate", "half of a surrogate pair", '{"\\ud800x":1}')
safetensors("header_cut", "header, byte 1: a string is expected", "{")
safetensors("header_comma", "a string is expected", '{"__metadata__":{},}')
safetensors("header_control", "a control character in a string", '{"\n":1}')
safetensors("header_escape", "an unknown escape", '{"\\x":1}')
safetensors("header_trailing", "more text after the end of the object", "{}{}")
safetensors("header_zero_byte", "more text after the end of the object", "{}\0")
safetensors("header_deep", "more than 64 objects and arrays within each other",
            tensor(0, 16, more=',"x":' + "[" * 1000 + "]" * 1000), four)
safetensors("header_word", "a value is expected", tensor(0, 16, more=',"x":nul'), four)
safetensors("name_twice", "names 't' twice", '{"t":' + info(0, 16) + ',"t":' + info(16, 32) + "}", four * 2)
safetensors("name_twice_escaped", "names 't' twice", '{"t":' + info(0, 16) + ',"\\u0074":' + info(16, 32) + "}", four * 2)
safetensors("member_twice", "'t' has 'dtype' twice", tensor(0, 16, more=',"dtype":"I32"'), four)
safetensors("metadata_key_twice", "its metadata has 'a' twice", '{"__metadata__":{"a":"1","a":"1"}}')
safetensors("metadata_twice", "'__metadata__' stands there twice", '{"__metadata__":{},"__metadata__":{}}')
safetensors("metadata_number", "a string is expected", '{"__metadata__":{"a":1}}')
safetensors("member_missing", "'t' lacks dtype, shape or data_offsets", '{"t":{"dtype":"I32","shape":[2,2]}}')
safetensors("dtype_unknown", "'t' has the unknown dtype 'I33'", tensor(0, 16, "I33"), four)
safetensors("shape_negative", "-2 where an integer of 0 or more is expected", tensor(0, 16, shape="[-2,-2]"), four)
safetensors("shape_fraction", "2.0 where an integer of 0 or more is expected", tensor(0, 16, shape="[2.0,2]"), four)
safetensors("shape_octal", "a number begins with 0", tensor(0, 16, shape="[02,2]"), four)
safetensors("shape_number_overflow", "overflows an integer of 64 bits", tensor(0, 16, shape="[2,9223372036854775808]"), four)
safetensors("shape_overflow", "'t' overflows: its shape (2, 9223372036854775807)",
            tensor(0, 16, shape="[2,9223372036854775807]"), four)
safetensors("shape_wraps_to_size", "'t' overflows", tensor(0, 16, shape="[4294967296,4294967296,4]"), four)
safetensors("shape_bits_wrap", "'t' overflows", tensor(0, 0, "F64", "[288230376151711744]"))  # 2^58 of 64 bits
safetensors("shape_long", "more than 64 extents", tensor(0, 4, shape="[" + ",".join("1" * 65) + "]"), four[:4])
safetensors("size_wrong", "'t' has data_offsets for 4 bytes, but its shape (2, 2) of I32 needs 16", tensor(0, 4), four[:4])
safetensors("size_of_nibbles", "'t' is misaligned", tensor(0, 2, "F4", "[3]"), b"\0\0")
safetensors("offsets_backwards", "it ends before it begins", tensor(0, 16).replace("[0,16]", "[16,0]").replace("[2,2]", "[0]") +
            "", b"")
safetensors("offsets_three", "are not two numbers", tensor(0, 16).replace("0,16", "0,16,16"), four)
safetensors("offsets_overlap", "'u' has data_offsets 8 to 24 where 16 is the next; it overlaps another tensor",
            '{"t":' + info(0, 16) + ',"u":' + info(8, 24) + "}", four + four[:8])
safetensors("offsets_same", "it overlaps another tensor", '{"t":' + info(0, 16) + ',"u":' + info(0, 16) + "}", four)
safetensors("offsets_gap", "there is a gap before it", '{"t":' + info(0, 16) + ',"u":' + info(20, 36) + "}", four * 2 + b"gap!")
safetensors("offsets_late", "there is a gap before it", tensor(4, 20), b"gap!" + four)
safetensors("data_short", "need 16 bytes of data, but 14 follow the header; it is cut short", tensor(0, 16), four[:14])
safetensors("data_long", "need 16 bytes of data, but 20 follow the header; it is too long", tensor(0, 16), four + b"more")


def npy(name, expected, header, data=b"", version=1, length=None, magic=b"\x93NUMPY"):
    length = len(header) if length is None else length
    cases.append((name + ".npy", expected, magic + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", length) +
                  header.encode() + data))


def array(descr, shape, fortran="False"):
    return f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"


six = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
npy("version_1", "ok float [2,3] = 1 2 3 4 5 6", array("<f4", "(2, 3)") + "   \n", six)
npy("version_2", "ok float [2,3] = 1 2 3 4 5 6", array("<f4", "(2, 3)") + "\n", six, version=2)
npy("version_3", "ok float [6] = 1 2 3 4 5 6", array("<f4", "(6,)") + "\n", six, version=3)
npy("fortran", "ok float [2,3] = 1 3 5 2 4 6", array("<f4", "(2, 3)", "True"), six)
npy("fortran_3", "ok uint8 [2,3,2] = 0 6 2 8 4 10 1 7 3 9 5 11", array("|u1", "(2, 3, 2)", "True"), bytes(range(12)))
npy("big_endian", "ok int16 [3] = 1 -2 258", array(">i2", "(3,)"), struct.pack(">3h", 1, -2, 258))
npy("scalar", "ok double [] = 0.1", array("<f8", "()"), struct.pack("<d", 0.1))
npy("bools", "ok bool [3] = 0 1 1", array("|b1", "(3,)"), b"\0\1\7")
npy("halves", "ok half [2] = 1.5 -2", array("<f2", "(2,)"), struct.pack("<2e", 1.5, -2))
npy("bytes", "ok int8 [2] = -1 127", array("|i1", "(2,)"), b"\xff\x7f")
npy("python_2", "ok int32 [2] = 7 8", array("<i4", "(2L,)"), struct.pack("<2i", 7, 8))
npy("keys_in_other_order", "ok int64 [1] = -9", "{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<i8\"}", struct.pack("<q", -9))
npy("unsigned", "ok uint16 [1] = 65535", array("<u2", "(1,)"), b"\xff\xff")
npy("no_elements", "ok float [0,3] empty", array("<f4", "(0, 3)"))

cases.append(("empty.npy", "not a .npy file", b""))
cases.append(("pickle.npy", "is a pickle", b"\x80\x04]\x94."))
cases.append(("zip.npy", "is a .npz archive", b"PK\3\4" + bytes(30)))
cases.append(("magic_only.npy", "cut short: incomplete npy header", b"\x93NUMPY"))
npy("magic", "not a .npy file", array("<f4", "(2, 3)"), six, magic=b"\x93NUMPX")
npy("version_9", "is of version 9.0 of the npy format", array("<f4", "(2, 3)"), six, version=9)
npy("header_cut", "cut short: incomplete npy header", array("<f4", "(6,)"), length=60000)
npy("header_long", "claims an npy header of 4294967295 bytes", array("<f4", "(6,)"), version=2, length=2**32 - 1)
npy("objects", "holds Python objects in a pickle", array("|O", "(4,)"), b"\x80\x03]q\0.")
npy("records", "holds records of several fields", array("", "(1,)").replace("''", "[('a', '<f4')]"), six[:4])
npy("strings", "holds elements of NumPy's type '<U2'", array("<U2", "(1,)"), bytes(8))
npy("complex", "holds elements of NumPy's type '<c8'", array("<c8", "(1,)"), bytes(8))
npy("no_order", "holds elements of NumPy's type '|f4'", array("|f4", "(1,)"), bytes(4))
npy("not_a_dict", "has no '{'", "[1]")
npy("code", "has no string where one is expected", "{__import__('os'): 1}")
npy("key_twice", "has 'shape' twice", array("<f4", "(1,), 'shape': (1,)"), six[:4])
npy("key_missing", "lacks 'descr', 'fortran_order' or 'shape'", "{'descr': '<f4', 'shape': (1,)}", six[:4])
npy("key_unknown", "has an unknown key", array("<f4", "(1,), 'x': 1"), six[:4])
npy("trailing", "goes on after the dict", array("<f4", "(1,)") + " 1", six[:4])
npy("order_other", "has a 'fortran_order' other than True and False", array("<f4", "(1,)", "1"), six[:4])
npy("shape_number", "has a shape that is no tuple", array("<f4", "(1)"), six[:4])
npy("shape_negative", "integers of 0 or more", array("<f4", "(-1,)"), six[:4])
npy("shape_overflow", "has an extent that overflows", array("<f4", "(9223372036854775808,)"))
npy("shape_product", "has more elements than can be addressed", array("<f4", "(4294967296, 4294967296)"))
npy("no_elements_of_large_extents", "ok float [0,4294967296,4294967296] empty", array("<f4", "(0, 4294967296, 4294967296)"))
npy("shape_long", "has more than 8 extents", array("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), six[:4])
npy("data_short", "cut short: 20 bytes of data where its shape (2, 3) needs 24", array("<f4", "(2, 3)"), six[:20])
npy("data_huge", "cut short: 24 bytes of data where", array("<f4", "(1000000, 1000000)"), six)
npy("data_long", "longer than its shape (2, 3) needs", array("<f4", "(2, 3)"), six + b"x")

lines = [f"{name}\t{expected}\t{data.hex()}\n" for name, expected, data in cases]
assert len({name for name, _, _ in cases}) == len(cases)
(Path(__file__).parent / "formats.tsv").write_text("".join(lines), encoding="utf-8")
