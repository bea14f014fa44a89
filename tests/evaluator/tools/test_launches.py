"""Launches noted at the call, and CUPTI's activities matched with them."""

import pytest

from evaluator.launches import Activity, LaunchLog, base_name, calls_between, timeline, with_times

FLUSH = 1 << 27


def kernel(name, start, length, grid=(4, 1, 1), block=(256, 1, 1)):
    return Activity("kernel", name, start, length, grid, block)


def fill(start, nbytes=FLUSH):
    return Activity("fill", "Memset (Device)", start, 10.0, nbytes=nbytes)


def noted(*launches):
    log = LaunchLog(open=True)
    for name, grid in launches:
        log.note(name, grid, (256,), 0)
    return log.launches


@pytest.mark.parametrize(("name", "base"), [
    ("softmax", "softmax"), ("void shift<float, 3>(float const*, float*, int)", "shift"), ("ns::k(int)", "k"),
    ("shift<float, 3>", "shift"), ("_Z4kernPfi", "kern"), ("_ZN2ns4kernILi3EEEvPf", "kern"), ("_Zebra", "_Zebra"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::X>(int, T1)",
                                   "vectorized_elementwise_kernel")])
def test_a_kernel_is_known_by_its_bare_name(name, base):
    assert base_name(name) == base


def test_launches_are_kept_only_while_the_log_is_open():
    log = LaunchLog()
    log.note("a", (1,), (32,), 0)
    log.open = True
    log.note("b", 7, (32, 2), 64)
    (only,) = log.launches
    assert (only.kernel, only.grid, only.block, only.dynamic_shared_bytes) == ("b", (7, 1, 1), (32, 2, 1), 64)


def test_a_fill_of_the_flush_size_separates_calls_and_the_solutions_own_fills_do_not():
    activities = [kernel("warm", 0, 1), fill(10), fill(20, 64), kernel("a", 30, 1), fill(40), kernel("a", 50, 1)]
    assert [[a.name for a in call] for call in calls_between(activities, FLUSH)] == [["Memset (Device)", "a"], ["a"]]


def test_times_are_medians_over_the_calls_and_foreign_kernels_are_a_librarys():
    own = noted(("shift<float, 3>", (4,)), ("sum", (4,)))
    calls = [[kernel("void shift<float, 3>(float*)", 0, t), kernel("void cub::DeviceReduce<int>(int)", 5, 2 * t),
              kernel("sum", 9, 3 * t)] for t in (1.0, 2.0, 9.0)]
    got = with_times(own, calls)
    assert [(la.kernel, la.library, la.time_us) for la in got] == [
        ("shift<float, 3>", False, 2.0), ("void cub::DeviceReduce<int>(int)", True, 4.0), ("sum", False, 6.0)]


def test_two_launches_of_one_kernel_in_other_shapes_are_told_apart():
    own = noted(("k", (1,)), ("k", (4,)))
    (first, second) = with_times(own, [[kernel("k", 0, 1.0, (1, 1, 1)), kernel("k", 2, 5.0)]])
    assert [(first.grid[0], first.time_us), (second.grid[0], second.time_us)] == [(1, 1.0), (4, 5.0)]


def test_a_launch_that_cupti_did_not_see_keeps_an_unknown_time():
    own = noted(("k", (4,)), ("other", (4,)))
    assert [(la.kernel, la.time_us) for la in with_times(own, [[kernel("k", 0, 1.0)]])] == [("k", 1.0), ("other", None)]
    assert with_times(own, []) == own


def test_the_timeline_has_the_idle_time_between_kernels_that_may_overlap():
    line = timeline([[kernel("a", 0, 4), kernel("b", 2, 3), kernel("c", 8, 2)]])
    assert (line.span_us, line.busy_us, line.longest_gap_us) == (10, 7, 3)
    assert timeline([[], []]) is None
