"""The tensors that the launches of some golden kernels take: shapes and dtypes, by the kernel's name."""

import torch

EIGHT, BF16, F32, I32 = torch.float8_e4m3fn, torch.bfloat16, torch.float32, torch.int32
KERNELS = {
    "eight_bulk": [((64, 64), EIGHT), ((128, 64), EIGHT), ((64, 128), BF16)],
    "split_k": [
        ((64, 48), BF16),
        ((48, 1), BF16),
        ((1,), BF16),
        ((4, 64, 1), F32),
        ((64, 1), BF16),
    ],
    "searched": [((33,), I32), ((16,), I32), ((33,), I32)],
}
