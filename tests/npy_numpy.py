"""The NumPy side of test_base_npy.c: `check DIR` reads the files written there by our writer,
`write DIR` writes some for our reader. The values are those of the C test."""

import sys

import numpy as np

action, folder = sys.argv[1:]
f4 = np.array([[0.5, -1, 2], [3, 4, 5.25]], "<f4")
record = np.dtype([("event", "<i8"), ("covered", "u1"), ("gap", "<f8")])
rows = np.array([(i, i + 1, i / 4) for i in range(3)], record)


def same(name, expected):
    found = np.load(f"{folder}/{name}.npy", allow_pickle=False)
    assert found.dtype == expected.dtype, (name, found.dtype, expected.dtype)
    assert found.shape == expected.shape, (name, found.shape, expected.shape)
    assert (found == expected).all(), name


if action == "check":
    same("i8", np.arange(1000, dtype="<i8") ** 2 - 5)
    same("f4", f4)
    same("b1", np.array([True, False, True]))
    same("empty", np.zeros((0, 4), "<f8"))
    same("struct", rows)
else:
    good = {
        "i8": np.arange(100, dtype="<i8") ** 2 - 5,
        "f4": f4,
        "b1": np.array([True, False, True]),
        "scalar": np.array(2.5),
        "struct": rows,
        "big": f4.astype(">f4"),
        "object": np.array([None, 1], object),
        "text": np.array(["a", "bc"]),
        "complex": np.array([1j]),
        "aligned": np.zeros(2, np.dtype([("a", "u1"), ("b", "<f8")], align=True)),
        "fortran": np.asfortranarray(f4),
    }
    for name, array in good.items():
        np.save(f"{folder}/{name}.npy", array)
    for version in (2, 3):
        with open(f"{folder}/f4_v{version}.npy", "wb") as file:
            np.lib.format.write_array(file, f4, version=(version, 0))
    np.savez(f"{folder}/archive.npz", f4=f4)
