"""The input, which is right wherever it is not negative."""


def run(x):
    return x
