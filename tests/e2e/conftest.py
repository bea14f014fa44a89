import pytest
from command import Command


@pytest.fixture
def kernelskill():
    return Command
