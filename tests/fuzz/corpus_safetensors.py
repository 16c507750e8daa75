"""Writes the corpus of fuzz_safetensors: small valid files and one for each way to be wrong."""

import json
import os

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "safetensors")


def entry(dtype="F32", shape=(2,), begin=0, end=8, **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end], **more}


def raw(text, data=b"", length=None, pad=True):
    """A file with this header text; `length` lies about the header's length."""
    body = text.encode("utf-8", "surrogatepass")
    if pad:
        body += b" " * (-len(body) % 8)
    size = len(body) if length is None else length
    return size.to_bytes(8, "little") + body + data


def st(header, data=b"", **how):
    return raw(json.dumps(header, separators=(",", ":")), data, **how)


one = {"a": entry()}
plain = json.dumps(entry())
files = {
    "one": st(one, bytes(8)),
    "two": st({"a": entry(), "b": entry("I64", (1, 1), 8, 16)}, bytes(16)),
    "two_reversed": st({"b": entry("I64", (1, 1), 8, 16), "a": entry()}, bytes(16)),
    "metadata": st({"__metadata__": {"model": "craft", "dim": "64"}, "a": entry()}, bytes(8)),
    "metadata_only": st({"__metadata__": {}}),
    "no_tensors": st({}),
    "scalar": st({"a": entry("F64", ())}, bytes(8)),
    "empty_tensor": st({"a": entry(shape=(0,), end=0), "b": entry()}, bytes(8)),
    "empty_huge": st({"a": entry(shape=(0, 2**62), end=0)}),
    "opaque": st({"a": entry("BF16", (4,)), "b": entry("F8_E4M3", (3,), 8, 11)}, bytes(11)),
    "unaligned": st({"a": entry("U8", (3,), 0, 3), "b": entry("F64", (1,), 3, 11)}, bytes(11)),
    "unpadded": st({"ab": entry()}, bytes(8), pad=False),
    "dims_8": st({"a": entry("U8", (1,) * 8, 0, 1)}, bytes(1)),
    "dims_9": st({"a": entry("U8", (1,) * 9, 0, 1)}, bytes(1)),
    "name_escape": raw('{"a\\n\\u00e4":%s}' % plain, bytes(8)),
    "name_nul": raw('{"a\\u0000":%s}' % plain, bytes(8)),
    "name_surrogate": raw('{"\\ud800":%s}' % plain, bytes(8)),
    "nothing": b"",
    "length_cut": b"\x08\0\0",
    "length_huge": st(one, bytes(8), length=2**64 - 1),
    "length_past_end": st(one, bytes(8), length=1000),
    "length_zero": st(one, bytes(8), length=0),
    "not_object": raw("[]"),
    "not_json": raw('{"a":'),
    "leading_space": raw(" {}"),
    "two_values": raw("{}{}"),
    "deep": raw('{"a":' + "[" * 3000 + "]" * 3000 + "}"),
    "duplicate": raw('{"a":%s,"a":%s}' % (plain, plain), bytes(8)),
    "metadata_list": st({"__metadata__": []}),
    "metadata_number": st({"__metadata__": {"dim": 64}}),
    "entry_number": st({"a": 1}),
    "entry_more": st({"a": entry(strides=[1])}, bytes(8)),
    "entry_less": st({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)),
    "dtype_unknown": st({"a": entry("F31")}, bytes(8)),
    "dtype_number": st({"a": entry(32)}, bytes(8)),
    "shape_negative": st({"a": entry(shape=(-2,))}, bytes(8)),
    "shape_real": st({"a": entry(shape=(2.0,))}, bytes(8)),
    "shape_overflow": st({"a": entry(shape=(2**33, 2**33))}, bytes(8)),
    "shape_wrong": st({"a": entry(shape=(3,))}, bytes(8)),
    "number_too_large": st({"a": entry(shape=(99999999999999999999,))}, bytes(8)),
    "offsets_reversed": st({"a": entry(begin=8, end=0)}, bytes(8)),
    "offsets_negative": st({"a": entry(begin=-8, end=0)}, bytes(8)),
    "offsets_three": st({"a": {**entry(), "data_offsets": [0, 8, 16]}}, bytes(8)),
    "past_end": st(one, bytes(7)),
    "past_end_far": st({"a": entry(shape=(2**60,), end=2**62)}, bytes(8)),
    "left_over": st(one, bytes(9)),
    "gap_first": st({"a": entry(begin=8, end=16)}, bytes(16)),
    "gap": st({"a": entry(), "b": entry(begin=12, end=20)}, bytes(20)),
    "overlap": st({"a": entry(), "b": entry(begin=4, end=12)}, bytes(12)),
    "same_place": st({"a": entry(), "b": entry()}, bytes(8)),
}
os.makedirs(folder, exist_ok=True)
for name, content in files.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
