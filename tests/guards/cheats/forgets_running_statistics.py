"""Normalises, but leaves the running statistics as they were."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(features)

    def forward(self, x):
        return torch.nn.functional.batch_norm(x, None, None, self.bn.weight, self.bn.bias, True)
