"""One evaluation for people."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from evaluator.launches import base_name
from evaluator.types import Evaluation, Status, TimeEstimate, Tool
from kernelskill.agents.diagnoser import describe_finding, describe_mismatch
from kernelskill.facts.nsight import bottleneck
from kernelskill.report.console import result_console, time_text
from kernelskill.report.speedup import baseline_table, headline, missing_lines, spread_text
from kernelskill.vocabulary import VOCABULARY

MAX_LOG_LINES = 30
MAX_RULES = 3
THROUGHPUTS = {name: VOCABULARY[fact].ncu for name, fact in (
    ("DRAM", "dram_throughput_pct"), ("L2", "l2_throughput_pct"), ("L1", "l1_throughput_pct"), ("SM", "sm_throughput_pct"))}
LOST: dict[Tool, str] = {
    "ncu": "hardware counters (throughputs, stalls, cache hits, sectors, NVIDIA's rules)",
    "cupti": "times of single kernels, gaps between them, launch overhead",
    "compute-sanitizer": "the check for memory errors and races",
}
"""What stays unknown without a tool."""


def print_evaluation(evaluation: Evaluation) -> None:
    """Verdict first, then what led to it, then what was measured."""
    console = result_console()
    colour = "green" if evaluation.status is Status.PASSED else "red"
    console.print(f"[{colour}]{evaluation.status.value}[/{colour}]  {escape(evaluation.message)}")
    if evaluation.mismatch:
        console.print("  " + describe_mismatch(evaluation.mismatch), markup=False)
    for finding in (found for found in evaluation.findings if found.message not in evaluation.message):
        console.print(f"  {finding.severity}: {describe_finding(finding)}", markup=False)
    if evaluation.status is Status.COMPILE_ERROR:
        for line in evaluation.compile_log.splitlines()[:MAX_LOG_LINES]:
            console.print("  " + line, markup=False)
    for line in time_lines(evaluation):
        console.print(line, markup=False)
    if evaluation.baselines:
        console.print(baseline_table(evaluation))
        console.print("\n".join([*missing_lines(evaluation), headline(evaluation)]), markup=False)
    for line in [*counter_lines(evaluation), *unknown_lines(evaluation)]:
        console.print(line, style="dim", markup=False)
    if evaluation.resources:
        console.print(_resource_table(evaluation))
    checks = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in evaluation.checks.items())
    console.print(f"checked   {checks or 'nothing'}; on {evaluation.environment.device} in {evaluation.environment.sandbox}",
                  style="dim", markup=False)
    console.print(seconds_line(evaluation), style="dim", markup=False)


def seconds_line(evaluation: Evaluation) -> str:
    """What the evaluation took, and its parts, the longest first."""
    seconds = evaluation.stage_seconds
    parts = [f"{name} {value:.1f}" for name, value in sorted(seconds.items(), key=lambda item: -item[1]) if value >= 0.05]
    return f"took      {sum(seconds.values()):.1f} s: {', '.join(parts)}"


def time_lines(evaluation: Evaluation) -> list[str]:
    """The time with its spread and what it was measured with, and the precision class."""
    lines = []
    if evaluation.time:
        lines.append(f"time      {spread_text(evaluation.time)} {origin_text(evaluation.time)}")
    elif evaluation.time_unavailable:
        lines.append(f"time      none: {evaluation.time_unavailable}")
    if evaluation.graph_time:
        lines.append(f"          {spread_text(evaluation.graph_time)} as a CUDA graph replay")
    if evaluation.precision_class:
        ratio = f"{evaluation.precision_ratio:.3g}"
        lines.append(f"precision {evaluation.precision_class}: its error is {ratio} times the reference's own")
    return lines


def origin_text(time: TimeEstimate) -> str:
    """`modelled, of sampled inputs, dram dominates`: how a time was made, and what it says beside the microseconds."""
    sampled = ", of sampled inputs" if time.sampled_inputs else ""
    return f"{time.provenance}{sampled}" + (f", {time.limiter} dominates" if time.limiter else "")


def unknown_lines(evaluation: Evaluation) -> list[str]:
    """What a GPU run does not know, and why: a line for each tool that gave nothing."""
    return [f"unknown   {LOST[tool]}: {reason}" for tool, reason in evaluation.unavailable.items()]


def counter_lines(evaluation: Evaluation) -> list[str]:
    """Of each kernel that Nsight Compute measured: what limits it, and NVIDIA's largest estimated speedups."""
    lines = []
    for profile in evaluation.profiles:
        known = {name: profile.metrics[metric] for name, metric in THROUGHPUTS.items() if metric in profile.metrics}
        shares = [f"{name} {percent:.0f} %" for name, percent in known.items()]
        estimates = sorted(((rule.speedup_pct, rule.rule) for rule in profile.rules if rule.speedup_pct), reverse=True)
        advice = ", ".join(f"{rule} {percent:.0f} %" for percent, rule in estimates[:MAX_RULES])
        lines.append(f"counters  {base_name(profile.kernel)}: {', '.join(shares)} of peak; Nsight Compute names "
                     f"{bottleneck(profile) or 'nothing'}" + (f"; its rules estimate {advice}" if advice else ""))
    return lines


def _resource_table(evaluation: Evaluation) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("kernel", "registers", "shared B", "spills B", "launches", "time"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    for kernel in evaluation.resources:
        launches = [launch for launch in evaluation.launches if launch.kernel == kernel.kernel]
        times = [launch.time_us for launch in launches if launch.time_us is not None]
        table.add_row(escape(kernel.kernel), str(kernel.registers), str(kernel.static_shared_bytes),
                      str(kernel.spill_store_bytes + kernel.spill_load_bytes), str(len(launches)),
                      time_text(sum(times) if times else None))
    return table
