"""What a task's own check would accept, on small tasks whose faults are known."""

import numpy as np
import pytest

from evaluator.lint import arrays
from evaluator.lint.nulls import judged
from evaluator.lint.reference import NativeReference
from evaluator.lint.shipped import examine
from evaluator.types import TaskSpec, Tolerance

SIZES = {"n": 64, "k": 512}
TOLERANCE = Tolerance(rtol=1e-4, atol=1e-4)
UNIFORM = """
import numpy as np
def make_inputs(rng, n, k):
    return {"x": rng.random((n, k), dtype=np.float32)}
"""
SIGNED = UNIFORM.replace("rng.random(", "rng.standard_normal(")


@pytest.fixture
def shipped(tmp_path):
    def run(text: str):
        path = tmp_path / "task.py"
        path.write_text(text)
        spec = TaskSpec(name="t", kind="native", path=str(path), sizes=SIZES, check_sizes=(SIZES,))
        return examine(NativeReference(spec, SIZES), TOLERANCE, SIZES, full_size=True, device="cpu")
    return run


def passing(found) -> set[str]:
    return {name for name, seen in found.nulls.items() if seen.passes}


@pytest.mark.parametrize(("source", "reference", "accepted"), [
    (UNIFORM, "np.maximum(x, 0)", {"input", "scaled_input"}),
    (SIGNED, "np.maximum(x, 0)", set()),
    (UNIFORM, "np.float32(1.0507) * x", {"scaled_input"}),
    (UNIFORM, "np.exp(x) / np.exp(x).sum() / 100", {"zeros", "constant", "scaled_input", "other_seed"}),
    (UNIFORM, "np.minimum(x.sum(1), 1)", {"ones", "constant", "other_seed"}),
    (UNIFORM, "np.full(3, 7.5, np.float32)", {"constant", "other_seed"}),
    (SIGNED, "x @ x.T", set()),
    (SIGNED, "x.argmax(1) * 0", {"zeros", "constant", "other_seed"}),
])
def test_null_candidates_that_the_check_accepts(shipped, source, reference, accepted):
    found = shipped(f"{source}\ndef reference(x):\n    return {reference}\n")
    assert passing(found) == accepted


def test_the_looser_tolerance_is_reported_apart(shipped):
    found = shipped(f"{UNIFORM}\ndef reference(x):\n    return x / 200\n")
    zeros = found.nulls["zeros"]
    assert not zeros.passes and zeros.passes_loose and zeros.wrong_share > 0.9
    assert zeros.max_error == pytest.approx(1 / 200, rel=1e-2)


def test_every_output_counts(shipped):
    found = shipped(f"{SIGNED}\ndef reference(x):\n    return 0 * x, x.sum(1)\n")
    assert passing(found) == set()


TWO = """
import numpy as np
def make_inputs(rng, n, k):
    return {"x": rng.standard_normal((n, n)), "y": np.tril(rng.standard_normal((n, n))), "scale": 2.0}
def reference(x, y, scale):
    return RESULT
"""


def test_inputs_that_do_not_matter_are_named(shipped):
    assert shipped(TWO.replace("RESULT", "x * scale")).ignored_inputs == ("y",)
    weak = shipped(TWO.replace("RESULT", "x * scale + 1e-9 * y"))
    assert weak.ignored_inputs == () and weak.weak_inputs == ("y",)
    assert shipped(TWO.replace("RESULT", "x * scale + y")).weak_inputs == ()


def test_structured_inputs_and_saturated_outputs_are_named(shipped):
    found = shipped(TWO.replace("RESULT", "np.clip(x @ y, 0, 1)"))
    assert found.structures == {"y": "triangular"}
    assert 0.4 < found.same_value_share < 0.6


@pytest.mark.parametrize(("make", "kind"), [
    (lambda a: a + a.T, "symmetric"), (np.tril, "triangular"), (np.triu, "triangular"),
    (lambda a: np.diag(np.diag(a)), "diagonal"), (lambda a: a, ""), (lambda a: 0 * a, ""),
])
def test_structures(make, kind):
    assert arrays.structure(make(np.random.default_rng(0).standard_normal((5, 5)))) == kind


def test_non_finite_elements_agree_with_themselves_only():
    want = np.array([1.0, np.nan, np.inf, -np.inf])
    assert judged([want], [want.copy()], [(0.0, 0.0)]) == ([0.0], 0.0)
    for position, value in [(1, 0.0), (2, -np.inf), (2, 1e30), (0, np.nan), (3, np.nan)]:
        got = want.copy()
        got[position] = value
        assert judged([want], [got], [(1.0, 1.0)])[0] == [0.25], (position, value)


def test_numpy_and_torch_give_the_same_answers():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a = rng.standard_normal((40, 30)).astype(np.float32)
    b = a + (rng.random((40, 30)) < 0.1).astype(np.float32)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    tolerances = [(1e-3, 0.0), (2.0, 0.0)]
    assert arrays.worst(a, b, tolerances) == arrays.worst(ta, tb, tolerances)
    assert arrays.slope(a, b) == pytest.approx(arrays.slope(ta, tb)) and arrays.mean(a) == pytest.approx(arrays.mean(ta))
    assert arrays.share_of_one_value(np.maximum(a, 0)) == arrays.share_of_one_value(ta.clamp(min=0)) > 0.4
