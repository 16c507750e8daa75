"""Writes the corpus of fuzz_npy: small valid files and one for each way a header can be wrong."""

import os

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "npy")


def npy(header, data=b"", version=1, length=None, pad=True):
    """A .npy file with this header text; `length` lies about the header's length."""
    start = 10 if version == 1 else 12
    body = header.encode("utf-8")
    if pad:
        body += b" " * (-(start + len(body) + 1) % 64) + b"\n"
    size = len(body) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + size.to_bytes(start - 8, "little") + body + data


def head(descr="'<f4'", order="False", shape="(2,)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)


fields = "[('event', '<i8'), ('covered', '|u1'), ('score', '<f4')]"
files = {
    "plain_1d": npy(head(), bytes(8)),
    "plain_2d": npy(head("'<i8'", shape="(2, 3)"), bytes(48)),
    "scalar": npy(head("'<f8'", shape="()"), bytes(8)),
    "empty": npy(head(shape="(0,)")),
    "empty_huge": npy(head(shape="(0, 99999999999999999)")),
    "bool": npy(head("'|b1'"), bytes(2)),
    "struct": npy(head(fields), bytes(26)),
    "struct_empty_list": npy(head("[]"), bytes(8)),
    "version_2": npy(head(), bytes(8), version=2),
    "version_3": npy(head("[('k\u00e4se', '<f4')]"), bytes(8), version=3),
    "version_4": npy(head(), bytes(8), version=4),
    "not_npy": b"source,destination,time\n1,2,3\n",
    "magic_only": b"\x93NUMPY",
    "length_cut": b"\x93NUMPY\x02\x00\x10\x00",
    "header_past_end": npy(head(), bytes(8), length=65535),
    "header_past_end_2": npy(head(), bytes(8), version=2, length=2**32 - 1),
    "header_empty": npy("", bytes(8), pad=False),
    "data_short": npy(head(), bytes(7)),
    "data_long": npy(head(), bytes(9)),
    "misaligned": npy(head("'<f8'", shape="(1,)") + " " * 3, bytes(8), pad=False),
    "shape_negative": npy(head(shape="(-2,)"), bytes(8)),
    "shape_overflow": npy(head(shape="(4294967296, 4294967296)"), bytes(8)),
    "shape_too_large": npy(head(shape="(99999999999999999999999,)"), bytes(8)),
    "shape_five": npy(head(shape="(1, 1, 1, 1, 1)"), bytes(4)),
    "shape_open": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2", bytes(8)),
    "big_endian": npy(head("'>f4'"), bytes(8)),
    "object": npy(head("'|O'"), bytes(16)),
    "unicode": npy(head("'<U3'"), bytes(24)),
    "complex": npy(head("'<c8'"), bytes(16)),
    "float_1": npy(head("'|f1'"), bytes(2)),
    "type_open": npy("{'descr': '<f4", bytes(8)),
    "type_long": npy(head("'" + "f" * 100 + "'"), bytes(8)),
    "name_long": npy(head("[('%s', '<f4')]" % ("n" * 40)), bytes(8)),
    "subarray": npy(head("[('x', '<f4', (3,))]"), bytes(24)),
    "padding": npy(head("[('x', '<f4'), ('', '|V4')]"), bytes(16)),
    "fortran_2d": npy(head(order="True", shape="(1, 2)"), bytes(8)),
    "fortran_1d": npy(head(order="True"), bytes(8)),
    "order_word": npy(head(order="Maybe"), bytes(8)),
    "key_twice": npy("{'descr': '<f4', 'descr': '<f4', 'shape': (2,), }", bytes(8)),
    "key_missing": npy("{'descr': '<f4', 'shape': (2,), }", bytes(8)),
    "key_unknown": npy("{'descr': '<f4', 'extra': 1, }", bytes(8)),
    "escape": npy(head(r"'\x3cf4'"), bytes(8)),
    "text_nul": npy(head("'<f\0'"), bytes(8)),
}
os.makedirs(folder, exist_ok=True)
for name, content in files.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)
