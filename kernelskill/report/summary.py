"""The result of a run: one object for programs, a table for people, and the best solution as a file."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evaluator.gpu_state import slowed
from evaluator.types import Evaluation, Status
from kernelskill.memory.run import BEST, Run
from kernelskill.model import Usage
from kernelskill.report.console import ratio_text, result_console, time_text
from kernelskill.report.speedup import baseline_table, claim, final_report, headline, interval_of, missing_lines, spread_text

SHAPES = {
    "general": "right at other sizes of the task too (--shapes general)",
    "exact": "verified at the task's own sizes alone (--shapes exact)",
}


def report_of(run: Run) -> dict[str, Any]:
    """The run as one JSON object; times in µs, `speedup` = start / best, both of `time_provenance`."""
    graph = run.graph
    start = graph.evaluation(graph.start) if graph.start else None
    best = graph.evaluation(graph.best) if graph.best else None
    return {
        "run": str(run.folder),
        "task": run.config.task,
        "status": best.status.value if best else "NOT_STARTED",
        "rounds": graph.rounds,
        "repairs": sum(a.repair > 0 for a in graph.attempts),
        "writer": run.config.writer,
        "ablation": run.config.ablation,
        "shapes": run.config.shapes,
        "usage": Usage.of(run.calls).model_dump() if run.config.model else None,
        "methods": [m.method for m in graph.methods(graph.best)],
        "attempted": [a.method.method for a in graph.attempts if not a.repair],
        "start_time_us": graph.time_us(graph.start) if start else None,
        "best_time_us": graph.time_us(graph.best) if best else None,
        "speedup": graph.speedup(graph.best) if best else None,
        "speedup_interval": interval_of(start.time, best.time) if start and best else None,
        "speedup_over": "start",
        "precision_class": best.precision_class if best else None,
        "time_provenance": best.time.provenance if best and best.time else None,
        "device": run.config.device.name,
        "simulated": run.config.mode == "sim",
        "stop_reason": run.stop_reason,
        "final": final_report(run.final[1]) if run.final else None,
        "solution": str(run.folder / BEST) if best and best.status is Status.PASSED else None,
    }


def attempt_rows(run: Run) -> list[dict[str, Any]]:
    """One row an attempt, in order."""
    graph = run.graph
    return [
        {
            "round": a.round,
            "parent": a.parent,
            "child": a.child,
            "method": a.method.method,
            "params": a.method.params,
            "outcome": a.outcome,
            "gain": a.gain,
            "message": a.message,
            "repair": a.repair,
            "asked": a.asked,
            "diagnosis": a.diagnosis.kind if a.diagnosis else None,
            "status": a.evaluation.status.value if a.evaluation else None,
            "time_us": a.evaluation.time.time_us if a.evaluation and a.evaluation.time else None,
            "speedup": graph.speedup(a.child) if a.evaluation and a.evaluation.time else None,
        }
        for a in graph.attempts
    ]


def print_summary(run: Run, report: dict[str, Any]) -> None:
    """The end of `optimize`."""
    console = result_console()
    if not run.graph.start:
        why = next((a.message for a in reversed(run.seeds)), "")
        console.print(f"[red]not solved[/red]: the writer made no first solution: {escape(why)}")
        return
    if not report["solution"]:
        console.print(f"[red]not solved[/red]: the starting solution is {report['status']}; all of it: kernelskill evaluate "
                      f"{escape(str(run.source_path(run.graph.start)))} --task {escape(report['task'])}")
        return
    rounds = f"{report['rounds']} round{'' if report['rounds'] == 1 else 's'}"
    said = claim(report["speedup"], "the start", run.graph.evaluation(run.graph.best), report["speedup_interval"])
    console.print(
        f"[bold]{said}[/bold]: {time_text(report['start_time_us'])} → {time_text(report['best_time_us'])} "
        f"after {rounds} ({report['stop_reason'] or 'not finished'})"
    )
    if run.final:
        _print_final(console, run.final[1])
    if not report["stop_reason"]:
        console.print(f"go on     kernelskill optimize --resume {escape(report['run'])}")
    if report["ablation"]:
        console.print(f"ablation  {report['ablation']}")
    if run.config.model is not None:
        console.print(f"model     {escape(usage_line(Usage.of(run.calls), run.config.model.name))}")
    console.print(f"shapes    {SHAPES[run.config.shapes]}")
    console.print("methods   " + (" → ".join(report["methods"]) or "none helped"))
    needs = "cupy and torch" if "import torch" in run.source(run.graph.best) else "cupy alone"
    console.print(f"solution  {escape(report['solution'])}   (needs {needs})")
    if report["simulated"]:
        console.print("Times are modelled, not measured: trust the order, not the microseconds.", style="dim")
    console.print(f"audit     kernelskill why {escape(report['run'])}", style="dim")


def usage_line(usage: Usage, model: str) -> str:
    """What language models used up, in a line."""
    cost = f", {usage.cost:.4f} USD" if usage.calls > usage.unpriced else ", no price known"
    bad = ", ".join(f"{count} {fault}" for fault, count in sorted(usage.faults.items()))
    more = [f"{usage.retries} retries"] * bool(usage.retries) + [f"{usage.cached} from the record"] * bool(usage.cached)
    return (f"{model}: {usage.calls} calls{' (' + ', '.join(more) + ')' if more else ''}, {usage.prompt_tokens} + "
            f"{usage.reply_tokens} tokens{cost}{'; answers without a module: ' + bad if bad else ''}")


def _print_final(console: Console, final: Evaluation) -> None:
    """The measurement on fresh samples that the run ends with."""
    if final.status is not Status.PASSED or final.time is None:
        console.print(f"[red]measured again: {final.status.value}[/red]  {escape(final.message or final.time_unavailable)}")
        return
    console.print(f"measured again on fresh samples: {spread_text(final.time)}", markup=False)
    if held := slowed(*final.gpu_states[:1], *final.gpu_states[-1:]) if final.gpu_states else ():
        console.print(f"the card was held back meanwhile ({', '.join(held)})", style="yellow")
    if final.baselines:
        console.print(baseline_table(final))
        for line in missing_lines(final):
            console.print(line, style="dim", markup=False)
    if said := headline(final):
        console.print(f"[bold]{escape(said)}[/bold]")


def _print_seeds(console: Console, run: Run) -> None:
    """The first solutions that a writer made, of which the run started from one."""
    for seed in run.seeds:
        repair = f" repair {seed.repair}" if seed.repair else ""
        took = time_text(seed.evaluation.time.time_us) if seed.evaluation and seed.evaluation.time else seed.message[:160]
        kind = "passed" if seed.outcome == "improved" else seed.diagnosis.kind if seed.diagnosis else seed.outcome
        console.print(f"first solution {seed.round}{repair}: {kind}  {took}", markup=False)


def print_run(run: Run) -> None:
    """`show`: the graph as text, then the table of attempts."""
    import networkx

    console = result_console()
    _print_seeds(console, run)
    if not run.graph.start and run.stop_reason:
        print_summary(run, report_of(run))
        return
    if not run.graph.start:
        console.print("nothing was evaluated yet; go on with: kernelskill optimize --resume " + escape(str(run.folder)))
        return
    named = networkx.relabel_nodes(run.graph.networkx, {n: _node_label(run, n) for n in run.graph.networkx})
    for line in networkx.generate_network_text(named, ascii_only=False):
        console.print(line, markup=False)
    console.print(_attempt_table(run))
    print_summary(run, report_of(run))


def _node_label(run: Run, digest: str) -> str:
    evaluation = run.graph.evaluation(digest)
    made_by = next((str(a.method) for a in run.graph.attempts if a.child == digest), "start")
    best = "  ← best" if digest == run.graph.best and evaluation.status is Status.PASSED else ""
    return f"{digest[:8]} {made_by}  {evaluation.status.value} {time_text(run.graph.time_us(digest))}{best}"


def _attempt_table(run: Run) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("round", "method", "outcome", "time", "gain", "speedup", "note"):
        table.add_column(name, justify="right" if name in ("time", "gain", "speedup") else "left", overflow="fold")
    for row in attempt_rows(run):
        params = " ".join(f"{k}={v}" for k, v in sorted(row["params"].items()))
        table.add_row(
            f"{row['round']} repair {row['repair']}" if row["repair"] else str(row["round"]),
            escape(f"{row['method']} {params}".strip()),
            row["outcome"],
            time_text(row["time_us"]),
            ratio_text(row["gain"]),
            ratio_text(row["speedup"]),
            escape(row["message"][:160]),
        )
    return table
