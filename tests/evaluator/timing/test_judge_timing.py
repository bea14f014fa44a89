"""The judge's way of timing: what every call gets, and which cheats a compared timed call finds."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_session import HONEST, PROBLEM

from evaluator.judge_timing import CHECKED_EARLY, FACTOR_BITS, LOOKS, SAMPLES, OtherEnded, WrongWhenTimed, _planned
from evaluator.precision import Precision
from evaluator.runner import Ended
from evaluator.timing import scaled
from evaluator.trees import Leaf
from evaluator.types import Status

HEADER = "import torch\nclass ModelNew(torch.nn.Module):\n    calls = 0\n    kept = None\n    def forward(self, x):\n"
REAL = "torch.nn.functional.layer_norm(x, x.shape[1:]) + 0.01 * x"


def model(*lines: str) -> str:
    return HEADER + "".join(f"        {line}\n" for line in lines)


def test_an_honest_solution_is_timed_and_its_timed_call_compared(stage):
    made = stage()
    session, precision = made.session(), Precision()
    time = session.alone(made.ready(session, HONEST), precision)
    assert time.provenance == "cuda_event" and time.samples == len(time.samples_us) >= SAMPLES[0]
    assert time.low_us <= time.time_us <= time.high_us
    assert precision.classify() == "fp32" and len(precision.seen) == session.checked == CHECKED_EARLY


@pytest.mark.parametrize("name,solution", [
    ("kept for ever", model("if self.kept is None:", f"    self.kept = {REAL}", "return self.kept")),
    ("skipped after the warm-up",
     model("self.calls += 1", "if self.calls > 13:", "    return torch.empty_like(x)", f"return {REAL}")),
    ("half of the rows", model("out = torch.empty_like(x)", "n = len(x) // 2 if len(x) > 50 else len(x)",
                               "out[:n] = torch.nn.functional.layer_norm(x[:n], x.shape[1:]) + 0.01 * x[:n]", "return out")),
])
def test_work_that_is_skipped_when_timed_is_found(stage, name, solution):
    made = stage()
    session = made.session()
    with pytest.raises(WrongWhenTimed) as found:
        session.alone(made.ready(session, solution), Precision())
    assert found.value.verdict.status is Status.INCORRECT_NUMERICAL
    assert "timed call at the full sizes" in str(found.value)
    mismatch = found.value.verdict.mismatch
    assert mismatch.index is not None and len(mismatch.index) == 2 and mismatch.expected_shape == (96, 64)


def test_another_shape_at_the_full_sizes_is_found(stage):
    made = stage()
    session = made.session()
    with pytest.raises(WrongWhenTimed, match=r"\[\[95, 64\]\]"):
        session.alone(made.ready(session, model(f"return ({REAL})[1:]")), Precision())


def test_no_two_calls_see_the_same_values_or_all_the_same_addresses(stage):
    made = stage()
    session = made.session()
    spying = model("import pathlib", f"with pathlib.Path({str(made.bench.folder / 'seen')!r}).open('a') as file:",
                   "    print(x.data_ptr(), x.sum().item(), file=file)", f"return {REAL}")
    runner = made.ready(session, spying)
    (made.bench.folder / "seen").write_text("")
    session.alone(runner, Precision())
    addresses, sums = zip(*(line.split() for line in (made.bench.folder / "seen").read_text().splitlines()), strict=True)
    assert len(set(sums)) >= len(sums) - 3  # two of the factors may be the same
    assert len(set(addresses)) > len(addresses) // 2


def test_labels_keep_their_values(stage):
    made = stage("""
class Model(nn.Module):
    def forward(self, x, labels):
        return x * labels
def get_inputs():
    return [torch.randn(64, 32), torch.randint(0, 2, (64, 32)).float() * 2 - 1]
def get_init_inputs():
    return []
""")
    session = made.session()
    exact = HEADER.replace("(self, x)", "(self, x, labels)") + "        return torch.where(labels.abs() == 1, x * labels, x)\n"
    assert session.alone(made.ready(session, exact), Precision()).samples


def test_two_processes_take_turns_and_each_fails_for_itself(stage):
    made = stage()
    session = made.session()
    first, second = made.ready(session, HONEST), made.ready(session, HONEST)
    own, other = session.in_turns(first, second)
    assert own.samples == other.samples and own.samples >= SAMPLES[0]
    failing = model("self.calls += 1", "if self.calls > 20:", "    raise ValueError('out of order')", f"return {REAL}")
    with pytest.raises(OtherEnded, match="out of order"):
        session.in_turns(first, made.ready(session, failing))
    with pytest.raises(Ended, match="out of order"):
        session.in_turns(made.ready(session, failing), first)


def test_a_call_that_cannot_be_captured_says_why(stage):
    made = stage()
    session = made.session()
    time, reason = session.replayed(made.ready(session, HONEST), 12.0)
    assert time is None and reason.startswith("the call cannot be captured as a CUDA graph: ")
    assert session.replayed(made.runners[-1], 1e6) == (None, "")


def test_the_same_seed_times_the_same_calls(stage):
    made = stage()
    first, second = made.session(3), made.session(3)
    assert first.checkpoint().factor == second.checkpoint().factor
    assert first.checkpoint().seed == second.checkpoint().seed


def test_outputs_larger_than_the_limit_are_sampled(stage, monkeypatch):
    monkeypatch.setattr("evaluator.judge_timing.COMPARED_ELEMENTS", 500)
    made = stage(PROBLEM)
    session, precision = made.session(), Precision()
    assert session.alone(made.ready(session, HONEST), precision).samples
    assert next(iter(session.checkpoint().expected.values())).values.shape == (500,)
    assert session.checkpoint().shapes == [[96, 64]]
    assert precision.classify() == "fp32"


@pytest.mark.parametrize("seconds,calls", [(0.0005, 200), (0.01, 100), (0.3, 20), (1.0, 10), (30.0, 7)])
def test_slow_calls_get_fewer_samples(seconds, calls):
    assert _planned(seconds) == calls


def test_a_cheat_that_waits_for_longer_than_a_verification_is_found(stage, monkeypatch):
    monkeypatch.setattr("evaluator.judge_timing.BUDGET_SECONDS", 1.0)
    made = stage()
    session = made.session()
    waits = model("self.calls += 1", "if self.calls < 60:", f"    self.kept = {REAL}", "return self.kept")
    with pytest.raises(WrongWhenTimed):
        session.alone(made.ready(session, waits), Precision())


def test_a_cheat_that_waits_for_more_calls_than_are_timed_is_found_afterwards(stage):
    made = stage()
    session, precision = made.session(), Precision()
    waits = model("self.calls += 1", "if self.calls < 600:", f"    self.kept = {REAL}", "return self.kept")
    runner = made.ready(session, waits)
    session.alone(runner, precision)  # it is honest for all of them
    with pytest.raises(WrongWhenTimed, match="work that is skipped on repeated calls"):
        session.afterwards(runner, 50.0, precision)


def test_an_honest_solution_is_right_afterwards_and_a_slow_one_is_called_once_more(stage):
    made = stage()
    session = made.session()
    counting = model("self.calls += 1", f"return {REAL} if self.calls < 30 else ({REAL}) + 1")
    runner = made.ready(session, counting)  # the warm-up takes 10 calls
    session.afterwards(runner, 1e6, Precision())
    assert session.checked == 1
    with pytest.raises(WrongWhenTimed):
        session.afterwards(runner, 4000.0, Precision())


def test_every_stretch_of_the_timing_has_a_compared_call(stage, monkeypatch):
    monkeypatch.setattr("evaluator.judge_timing.BUDGET_SECONDS", 30.0)
    monkeypatch.setattr("evaluator.judge_timing.known", lambda samples: False)
    made = stage()
    session, precision = made.session(), Precision()
    time = session.alone(made.ready(session, HONEST), precision)
    assert time.samples == SAMPLES[1]
    assert session.checked == CHECKED_EARLY + len(LOOKS)


def test_the_reference_is_computed_while_the_solution_is_made_ready(stage):
    made = stage()
    plain, ahead = made.session(3), made.session(3)
    ahead.begin_reference()
    runner = made.ready(ahead, HONEST)
    assert ahead.alone(runner, Precision()).samples
    assert (plain.checkpoint().factor, plain.checkpoint().seed) == (ahead.checkpoint().factor, ahead.checkpoint().seed)
    for want, have in zip(plain.checkpoint().expected.values(), ahead.checkpoint().expected.values(), strict=True):
        assert (want.values == have.values).all() and (want.allowed == have.allowed).all()


def test_a_reference_that_fails_ahead_fails_where_it_is_needed(stage):
    made = stage()
    session = made.session()
    session.reference = lambda problem, seed, count: 1 / 0
    session.begin_reference()
    with pytest.raises(ZeroDivisionError):
        session.checkpoint()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_scaled_inputs_are_rounded_once_to_their_dtype(dtype):
    bits = np.random.default_rng(2).integers(0, 1 << 32, 100_000, dtype=np.uint32)
    with np.errstate(all="ignore"):
        values = bits.view(np.float32).astype(dtype)  # every exponent, denormals among them
    values = values[np.isfinite(values)]
    for factor in (0.9, 943719 / (1 << FACTOR_BITS), 1 - 1 / (1 << FACTOR_BITS)):
        factor = int(factor * (1 << FACTOR_BITS)) / (1 << FACTOR_BITS)
        exact = values.astype(np.float64) * factor
        want = exact if dtype == "float64" else exact.astype(np.float32).astype(dtype)
        assert (scaled(Leaf.of(values), factor).values == want).all()


@pytest.mark.parametrize(("steady", "samples"), [(True, LOOKS[0]), (False, SAMPLES[1])])
def test_two_that_take_turns_are_sampled_until_both_are_known(stage, monkeypatch, steady, samples):
    monkeypatch.setattr("evaluator.judge_timing.BUDGET_SECONDS", 30.0)
    made = stage()
    session = made.session()
    first, second = made.ready(session, HONEST), made.ready(session, HONEST)
    rng = np.random.default_rng(1)
    times = {first: lambda: 50.0, second: lambda: 50.0 if steady else rng.normal(50, 9)}
    monkeypatch.setattr(session, "sample", lambda runner, *_, **__: float(times[runner]()))
    monkeypatch.setattr(session, "check", lambda *_: None)
    own, other = session.in_turns(first, second)
    assert own.samples == other.samples == samples
