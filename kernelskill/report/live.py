"""Live progress of a run: a line when a method is chosen, a line with the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.markup import escape

from evaluator.types import Evaluation, Status
from kernelskill.agents.diagnoser import diagnose
from kernelskill.errors import AwaitingAnswer
from kernelskill.memory.run import Run
from kernelskill.model import Attempt, Decision, MethodApplication
from kernelskill.report.console import progress_console, ratio_text, time_text
from kernelskill.report.evaluation import origin_text, unknown_lines

STYLE = {"improved": "green", "equal": "yellow", "regressed": "yellow", "duplicate": "yellow"}


class Silent:
    """Says nothing (`--json`)."""

    def opened(self, run: Run) -> None:
        """The run folder exists."""

    def started(self, evaluation: Evaluation) -> None:
        """The start was reviewed."""

    def decided(self, round_: int, decision: Decision, method: MethodApplication | None) -> None:
        """A decision was taken."""

    def attempted(self, attempt: Attempt) -> None:
        """An attempt ended."""

    def comparing(self, baselines: Sequence[str]) -> None:
        """The best solution is measured again, beside the baselines."""

    def waiting(self, awaited: AwaitingAnswer) -> None:
        """Somebody is to answer; told although nothing else is, because nothing happens before."""
        click.echo(f"waiting: {awaited}", err=True)


class Progress(Silent):
    """Writes to stderr as things happen."""

    def __init__(self) -> None:
        self.console = progress_console()
        self.run: Run | None = None

    def opened(self, run: Run) -> None:
        """Say what runs where."""
        self.run = run
        config = run.config
        where = "simulated, times are modelled" if config.mode == "sim" else "measured"
        device = f"{escape(config.device.name)} ({config.device.arch}; {where})"
        writer = f"{config.writer} ({config.model.name})" if config.model else config.writer
        without = f", {config.ablation}" if config.ablation else ""
        self.console.print(f"[bold]{escape(config.task)}[/bold] on {device}, writer {escape(writer)}, "
                           f"at most {config.rounds} rounds{without}")
        self.console.print(f"run folder {run.folder}", style="dim", markup=False)
        if run.graph.start:
            self.console.print(f"going on after {run.graph.rounds} rounds", style="dim")

    def started(self, evaluation: Evaluation) -> None:
        """The start's verdict and time."""
        if evaluation.status is Status.PASSED:
            self.console.print(f"start     [green]{evaluation.status.value}[/green]  {self._time(evaluation)}")
            for line in unknown_lines(evaluation):
                self.console.print(line, style="dim", markup=False)
        else:
            self.console.print(f"start     [red]{evaluation.status.value}[/red]  {escape(diagnose(evaluation))}")

    def decided(self, round_: int, decision: Decision, method: MethodApplication | None) -> None:
        """What was chosen and why."""
        if method is None:
            self.console.print(f"stop      {decision.reason}", markup=False)
        else:
            self.console.print(f"round {round_:<3} {method}", style="bold", markup=False)
            because = decision.reason.removeprefix(f"{method.method}: ")
            self.console.print(f"          {because}", style="dim", markup=False)

    def attempted(self, attempt: Attempt) -> None:
        """What came of it."""
        style = STYLE.get(attempt.outcome, "red")
        line = f"          [{style}]{f'repair {attempt.repair}: ' if attempt.repair else ''}{attempt.outcome}[/{style}]"
        if attempt.evaluation is not None and attempt.evaluation.time is not None:
            line += f"  {self._time(attempt.evaluation)}  {ratio_text(attempt.gain)} on its parent"
        assert self.run is not None
        graph = self.run.graph
        # The first line names the device and how times are taken, the last one the full claim.
        self.console.print(f"{line}  (best so far {ratio_text(graph.speedup(graph.best))})")
        if attempt.message:
            self.console.print(f"          {attempt.message}", style="dim", markup=False)

    def comparing(self, baselines: Sequence[str]) -> None:
        """What the last minutes are for."""
        self.console.print(f"measuring the best solution again, in turns with {', '.join(baselines)}", markup=False)

    @staticmethod
    def _time(evaluation: Evaluation) -> str:
        if evaluation.time is None:
            return f"no time: {escape(evaluation.time_unavailable)}"
        return f"{time_text(evaluation.time.time_us)} {origin_text(evaluation.time)}"
