"""A C++ extension that calls torch from the inside."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = "torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) { return torch::linear(x, w, b); }"
extension = load_inline(name="extension", cpp_sources=SOURCE, functions=["linear"])


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(outer, inner))
        self.bias = torch.nn.Parameter(torch.zeros(outer))

    def forward(self, x):
        return extension.linear(x, self.weight, self.bias)
