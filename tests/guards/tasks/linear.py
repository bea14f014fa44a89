"""x W^T + b."""

import torch
import torch.nn as nn

rows = 512
inner = 256
outer = 256


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner) * 0.1)
        self.bias = nn.Parameter(torch.randn(outer) * 0.1)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


def get_inputs():
    return [torch.rand(rows, inner)]


def get_init_inputs():
    return [inner, outer]
