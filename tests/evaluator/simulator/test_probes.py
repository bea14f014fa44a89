"""Every probe in the simulator: what it computes is the reference's, and what an H200 computed where that is recorded."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from kernel_bench import Device

from benchmarks.probes.catalogue import load_probes
from benchmarks.probes.page import PAGE, page
from benchmarks.probes.probe import Case, Probe, Relation, disagreement
from benchmarks.probes.record import differs, read_record, row_of
from evaluator.compile import compile_cuda
from evaluator.simulator.interpreter import Module, Unsupported

PROBES = load_probes()
RECORDED = read_record()


@functools.cache
def shared_module(prelude: str, options: tuple[str, ...], arch: str) -> Module:
    """All probes that can be compiled together, in one module: headers are compiled once."""
    together = [p for p in PROBES if (p.prelude, p.options, p.arch) == (prelude, options, arch)]
    source = "\n".join([prelude, *(p.code for p in together)])
    return Module(compile_cuda(source, arch=arch, options=(*options, "--ptxas-options=-O0")).ptx)  # only the PTX is run


def outputs_of(probe: Probe, case: Case) -> dict[str, np.ndarray]:
    device = Device()
    arrays = {name: device.array(array, name=name) for name, array in case.arrays.items()}
    result = device.launch_in(shared_module(probe.prelude, probe.options, probe.arch), probe.name, probe.grid, probe.block,
                              [*arrays.values(), *case.scalars], dynamic_shared=probe.shared, cooperative=probe.cooperative)
    assert result.findings == []
    return arrays


def test_the_set_is_wide_and_its_names_are_its_own():
    assert len(PROBES) == len({p.name for p in PROBES}) >= 60


@pytest.mark.parametrize("probe", [p for p in PROBES if not p.refused], ids=lambda p: p.name)
def test_the_simulator_computes_what_the_reference_does(probe):
    case = probe.case()
    outputs = outputs_of(probe, case)
    assert disagreement(probe, case.expected(), outputs) == ""
    assert case.expected(), "a probe without a reference compares nothing"
    if probe.name in RECORDED and not RECORDED[probe.name]["error"]:
        assert differs(probe, RECORDED[probe.name], outputs) == ""


@pytest.mark.parametrize("probe", [p for p in PROBES if p.refused], ids=lambda p: p.name)
def test_what_the_simulator_does_not_execute_is_refused_by_name_and_line(probe):
    with pytest.raises(Unsupported, match=probe.refused) as refusal:
        shared_module(probe.prelude, probe.options, probe.arch).code(probe.name)
    assert refusal.value.line or "recursive" in refusal.value.message


@pytest.mark.skipif(not RECORDED, reason="no H200 has run the probes yet: python -m benchmarks.h200 probes")
def test_the_card_agrees_with_the_references():
    probes = {p.name: p for p in PROBES}
    assert {name: row["error"] for name, row in RECORDED.items() if row["error"]} == {}
    wrong = {}
    for name, row in RECORDED.items():
        case = probes[name].case()
        wrong[name] = differs(probes[name], row, {**case.arrays, **{k: np.asarray(v) for k, v in case.expected().items()}})
    assert {name: why for name, why in wrong.items() if why} == {}


def example(relation: Relation) -> Probe:
    return Probe("example", "none", "", "", lambda rng: Case({"out": np.zeros(2, "f4")}, lambda: {"out": np.ones(2, "f4")}),
                 relation=relation)


def test_a_bit_too_many_and_an_error_over_the_bound_are_found():
    exact, loose = example(Relation()), example(Relation(1e-3))
    near = {"out": np.array([1, np.nextafter(np.float32(1), np.float32(2))], "f4")}
    assert "out[1]" in disagreement(exact, {"out": np.ones(2, "f4")}, near)
    assert disagreement(loose, {"out": np.ones(2, "f4")}, near) == ""
    assert "out[0]" in disagreement(loose, {"out": np.ones(2, "f4")}, {"out": np.array([1.01, 1], "f4")})
    assert "float32[2] expected" in disagreement(exact, {"out": np.ones(2, "f4")}, {"out": np.ones(3, "f4")})


def test_nan_payloads_do_not_count_but_signs_of_zero_do():
    nans = np.array([0x7FC00000, 0xFFC00001], "u4").view("f4")
    probe = example(Relation())
    assert disagreement(probe, {"out": nans}, {"out": nans[::-1].copy()}) == ""
    assert disagreement(probe, {"out": np.zeros(1, "f4")}, {"out": -np.zeros(1, "f4")})


def test_a_recorded_row_finds_a_changed_output():
    probe = example(Relation())
    row = row_of(probe, {"out": np.ones(2, "f4")})
    assert differs(probe, row, {"out": np.ones(2, "f4")}) == ""
    assert "out[1]" in differs(probe, row, {"out": np.array([1, 2], "f4")})


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m benchmarks.probes.page"

