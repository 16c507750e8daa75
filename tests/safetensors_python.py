"""The other side of test_nn_safetensors.c, with the `safetensors` package: `check DIR` reads the
file written there by our writer, `write DIR` writes one for our reader. The values are those of the
C test. `try` only says by its exit code whether the package is there."""

import sys

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

if sys.argv[1] == "try":
    sys.exit(0)
action, folder = sys.argv[1:]
tensors = {
    "item.weight": np.arange(15, dtype="<f4").reshape(5, 3) / 4,
    "slope": np.array(-2.5, "<f4"),
    "vocab.dst": np.arange(4, dtype="<i8") * 10**12 - 3,
    "state": np.array([0.1, -0.2]),
    "none": np.zeros((0, 7), "<f4"),
}
metadata = {"model": "craft-r", "note": 'a "quoted" line\nand \u00e4'}
path = f"{folder}/{action}.safetensors"

if action == "check":
    found = load_file(path)
    assert list(sorted(found)) == list(sorted(tensors)), list(found)
    for name, expected in tensors.items():
        assert found[name].dtype == expected.dtype, (name, found[name].dtype)
        assert found[name].shape == expected.shape, (name, found[name].shape)
        assert (found[name] == expected).all(), name
    with safe_open(path, "np") as file:
        assert file.metadata() == metadata, file.metadata()
else:
    save_file(tensors, path, metadata)
