"""Pieces between judge and runner: the message channel, failures, modelled time of several launches, the source of seeds."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time

import numpy as np
import pytest

from evaluator.channel import Channel, Closed, Late
from evaluator.failures import Failure, failure_of
from evaluator.profile_sim import NoTime, modelled_time
from evaluator.seccomp import AUDIT_ARCH, DENIED, filter_program
from evaluator.statistics import summarise
from evaluator.trees import Leaf, WireError
from evaluator.types import Evaluation, Finding, LaunchRecord, Status, TaskSpec
from evaluator.verify import plan


@pytest.fixture
def ends():
    a, b = (Channel(connection) for connection in socket.socketpair())
    yield a, b
    a.close()
    b.close()


def test_trees_arrive_as_they_were_sent(ends):
    tree = {"a": (Leaf.of(np.arange(6, dtype=np.float32).reshape(2, 3), "cupy"), 1, None, "text", 2.5),
            "b": Leaf(np.array([0x3F80], np.uint16), "bfloat16", "torch"), "scalar": Leaf.of(np.float64(3)),
            "list": [1, (2, [3])], "empty": Leaf.of(np.zeros((0, 4), np.int64)), "wide": Leaf.of(np.asfortranarray(np.eye(3)))}
    threading.Thread(target=ends[0].send, args=({"op": "call", "data": tree},)).start()
    message = ends[1].receive()
    got = message["data"]
    assert message["op"] == "call" and list(got) == list(tree)
    assert np.array_equal(got["a"][0].values, tree["a"][0].values) and got["a"][0].source == "cupy"
    assert got["a"][1:] == (1, None, "text", 2.5)
    assert got["b"].as_float64() == 1.0 and got["b"].dtype == "bfloat16"
    assert got["list"] == [1, (2, [3])]
    assert got["scalar"].shape == () and got["empty"].shape == (0, 4)
    assert np.array_equal(got["wide"].values, np.eye(3))


@pytest.mark.parametrize("header", [
    b"no json", b"[]", b'{"data": {"leaf": ["O", "O", [1], "x"]}}', b'{"data": {"leaf": ["float32", "float32", [-1], "x"]}}',
    b'{"data": {"leaf": ["float32", "int32", [1], "x"]}}', b'{"data": {"pickle": "x"}}', b'{"data": 3}', b"{}",
    json.dumps({"data": {"leaf": ["float32", "float32", [1 << 40], "x"]}}).encode(),
])
def test_nonsense_is_refused(ends, header):
    ends[0].connection.sendall(struct.pack("<I", len(header)) + header)
    with pytest.raises(WireError):
        ends[1].receive()


def test_a_huge_header_is_refused_unread(ends):
    ends[0].connection.sendall(struct.pack("<I", 1 << 31))
    with pytest.raises(WireError, match="header"):
        ends[1].receive()


def test_silence_is_late_and_a_hang_up_is_closed(ends):
    ends[1].deadline = time.monotonic() + 0.05
    with pytest.raises(Late):
        ends[1].receive()
    ends[0].close()
    ends[1].deadline = None
    with pytest.raises(Closed):
        ends[1].receive()


def test_objects_cannot_be_sent(ends):
    with pytest.raises(WireError, match="object"):
        ends[0].send({"data": {"x": object()}})


def test_a_runner_cannot_report_a_pass_as_failure():
    fields = Failure(Status.RUNTIME_ERROR, "m").to_dict()
    assert Failure.from_dict({**fields, "status": "PASSED"}).status is Status.RUNTIME_ERROR
    with pytest.raises(ValueError, match="WHATEVER"):
        Failure.from_dict({**fields, "status": "WHATEVER"})


def test_failure_names_the_solutions_line_even_below_other_code():
    source = "def run(f):\n    return f(0)\n"
    space: dict = {}
    exec(compile(source, "/s/solution.py", "exec"), space)
    with pytest.raises(ZeroDivisionError) as caught:
        space["run"](lambda x: 1 / x)
    failure = failure_of(caught.value, "/s/solution.py")
    assert failure.status is Status.RUNTIME_ERROR
    assert failure.message.startswith("/s/solution.py:2: ZeroDivisionError")


def test_refused_include_outranks_the_compile_error_it_causes():
    class CompileException(Exception):
        pass

    seen = [Finding(kind="guard", message="include of /etc/passwd")]
    assert failure_of(CompileException("kernel.cu(1): error: no"), "s.py").status is Status.COMPILE_ERROR
    assert failure_of(CompileException("kernel.cu(1): error: no"), "s.py", seen).status is Status.REJECTED


TERMS = ("sm", "issue", "fma", "alu", "xu", "tensor", "l1", "shared", "l2", "dram", "atomics", "latency", "tail", "launch")


def record(time_us: float, launch_us: float) -> LaunchRecord:
    terms = {**dict.fromkeys(TERMS, 0.0), "launch": launch_us, "dram": 1.0}
    return LaunchRecord(kernel="k", grid=(1, 1, 1), block=(32, 1, 1), time_us=time_us, terms_us=terms)


def test_launch_latency_hides_behind_the_launch_before():
    assert modelled_time([record(10, 3)]).time_us == 10
    assert modelled_time([record(10, 3), record(10, 3)]).time_us == 17
    assert modelled_time([record(4, 3), record(10, 3)]).time_us == 13
    assert (modelled_time([record(10, 3)]).provenance, modelled_time([record(10, 0.5)]).limiter) == ("modelled", "dram")


def test_no_time_without_launches():
    with pytest.raises(NoTime, match="launches no kernel"):
        modelled_time([])
    with pytest.raises(NoTime, match="cannot be modelled"):
        modelled_time([record(1, 1).model_copy(update={"time_us": None})])


def test_measured_times_carry_an_interval():
    estimate = summarise([10.0, 11, 10, 12, 10, 11, 30, 10, 11, 10])
    assert estimate.provenance == "cuda_event" and estimate.samples == 10
    assert estimate.low_us <= estimate.time_us <= estimate.high_us < 30


def test_plan_covers_every_size_with_secret_seeds():
    task = TaskSpec(name="t", kind="native", path="t.py", sizes={"n": 9}, check_sizes=({"n": 9}, {"n": 2}))
    first, second = list(plan(task, 1)), list(plan(task, 2))
    assert [how for _, how in first[:3]] == ["fresh", "repeat", "refill"]
    assert first[0][0].sizes == {"n": 2}
    assert {case.sizes["n"] for case, _ in first} == {2, 9}
    assert {case.distribution for case, _ in first} >= {"task", "normal", "negative", "large", "zeros"}
    assert {case.seed for case, _ in first}.isdisjoint({case.seed for case, _ in second})
    assert first == list(plan(task, 1))


@pytest.mark.parametrize("machine", AUDIT_ARCH)
def test_filter_jumps_stay_inside_the_program(machine):
    code = filter_program(machine, 1234)
    instructions = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    assert len(instructions) > len(DENIED[machine])
    for position, (operation, if_true, if_false, _) in enumerate(instructions):
        if operation & 7 == 5:
            assert position + 1 + max(if_true, if_false) < len(instructions)
    assert instructions[-1][0] == 6


def test_a_wrong_nan_survives_json():
    evaluation = Evaluation.model_validate({
        "status": "INCORRECT_NUMERICAL", "message": "m", "environment": {"device": "d", "simulated": True, "arch": "sm_90"},
        "mismatch": {"output": "out", "case": "c", "sizes": {}, "got": float("nan")}})
    assert np.isnan(Evaluation.from_json(evaluation.to_json()).mismatch.got)
