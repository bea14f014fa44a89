import pytest

from kernelskill.facts.device import load_device


@pytest.fixture
def h200():
    return load_device("h200")
