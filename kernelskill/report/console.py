"""The terminal: people's text goes to stderr while a run goes on, results to stdout; no colour where none is wanted."""

from __future__ import annotations

from rich.console import Console


def progress_console() -> Console:
    """For live progress (stderr)."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def result_console() -> Console:
    """For results (stdout)."""
    return Console(highlight=False, soft_wrap=True)


def time_text(us: float | None) -> str:
    """A time for people: `812.4 µs`, `3.21 ms`; `–` where there is none."""
    if us is None:
        return "–"
    return f"{us / 1000:.2f} ms" if us >= 10_000 else f"{us:.1f} µs"


def ratio_text(ratio: float | None) -> str:
    """A speedup for people: `3.42×`; `–` where there is none."""
    return "–" if ratio is None else f"{ratio:.2f}×"
