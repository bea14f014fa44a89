"""The doctor's findings for people."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.doctor import Check
from kernelskill.report.console import result_console

SIGN = {"ok": "[green]✓[/green]", "missing": "[yellow]–[/yellow]", "broken": "[red]✗[/red]"}


def print_checks(checks: Sequence[Check]) -> None:
    """A line each; what is missing says what that disables and what installs it."""
    console = result_console()
    for check in checks:
        sign = "[red]✗[/red]" if check.needed and check.state != "ok" else SIGN[check.state]
        console.print(f"{sign} {check.name:<18}", end="")
        console.print(check.detail, markup=False)
        if check.state != "ok":
            console.print(f"    {'needed for' if check.needed else 'disables'}: {check.disables}", style="dim", markup=False)
            console.print(f"    {check.install}", style="dim", markup=False)
    lacking = [check.name for check in checks if check.needed and check.state != "ok"]
    console.print("not ready: " + ", ".join(lacking) if lacking else "ready: kernelskill optimize examples/row_softmax")
