"""Convolution, then max(y, 0)."""

import torch
import torch.nn as nn

batch = 8
size = 64


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, bias=True)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.rand(batch, 3, size, size)]


def get_init_inputs():
    return []
