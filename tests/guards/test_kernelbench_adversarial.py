"""KernelBench's own adversarial kernels and checker cases, from a local checkout, are all caught, for the right reason."""

from __future__ import annotations

import pytest

from benchmarks.kernelbench_adversarial import adversaries, as_solution, checkout_folder

CHECKOUT = checkout_folder()
ADVERSARIES = list(adversaries(CHECKOUT)) if CHECKOUT else []


@pytest.mark.skipif(CHECKOUT is None, reason="KERNELBENCH names no checkout of ScalingIntelligence/KernelBench")
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda adversary: adversary.name)
def test_caught(adversary, judged, h200, tmp_path):
    evaluation = judged(adversary.request(CHECKOUT, tmp_path, h200, "sim"))
    assert adversary.disagreement(evaluation) == ""


@pytest.mark.parametrize(("fragment", "holds"), [
    ("result = x", "        result = x"), ("def forward(self, x):\n    return x", "    def forward(self, x):"),
    ("class ModelNew(Model):\n    pass", "class ModelNew(Model):"),
])
def test_a_fragment_becomes_a_whole_solution(fragment, holds):
    source, _ = as_solution(fragment)
    compile(source, "solution.py", "exec")
    assert holds in source and source.count("class ModelNew") == 1
