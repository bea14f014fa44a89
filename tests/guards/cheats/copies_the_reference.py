"""The reference's own lines."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner) * 0.1)
        self.bias = nn.Parameter(torch.randn(outer) * 0.1)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)
