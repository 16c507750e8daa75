#!/usr/bin/env python3
"""Can this PyTorch do what examples/python/torch_models.py needs? Prints what is missing, nothing if all is there."""
import torch
import torch.nn.functional as F


def lacks():
    if not hasattr(F, "scaled_dot_product_attention"):
        return "scaled_dot_product_attention"
    try:
        torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], fused=True)
    except (RuntimeError, TypeError):
        return "fused Adam for the CPU"
    return ""


if lacks():
    print(f"torch {torch.__version__} has no {lacks()}")
