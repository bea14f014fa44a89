"""A value that is worked out in a thread while something else goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def soon(function: Callable[[], T]) -> Future[T]:
    """What `function` returns or raises; the end of the process does not wait for it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # raised again where the result is asked for
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
