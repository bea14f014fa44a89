"""Messages between the judge and the process that runs a solution: length-prefixed JSON, then the arrays' bytes."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluator.trees import WireError, pack, payload_bytes, unpack

HEADER = struct.Struct("<I")
MAX_HEADER_BYTES = 16 << 20
MAX_PAYLOAD_BYTES = 9 << 30


class Closed(Exception):
    """The other side is gone."""


class Late(Exception):
    """The other side did not answer in time."""


class Channel:
    """One end of a socket pair. Every message is a JSON object; its `data` entry may hold a tree of arrays."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline: float | None = None
        """`time.monotonic()` after which `receive` raises Late; None waits for ever."""
        self.while_waiting: tuple[int, Callable[[], None]] | None = None
        """A file descriptor to watch meanwhile, and what to call when it has something to read."""

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message. Raises Closed; WireError where `data` holds something that cannot travel."""
        description, arrays = pack(message.get("data"))
        header = json.dumps({**message, "data": description}).encode()
        try:
            self.connection.sendall(HEADER.pack(len(header)) + header)
            for array in arrays:
                if array.size:
                    self.connection.sendall(array.reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> dict[str, Any]:
        """The next message. Raises Closed, Late, or WireError for what is no message."""
        length, = HEADER.unpack(self._read(HEADER.size))
        if length > MAX_HEADER_BYTES:
            raise WireError(f"a message header of {length} bytes")
        try:
            message = json.loads(self._read(length))
            size = payload_bytes(message["data"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise WireError(f"no message: {error}") from error
        if size > MAX_PAYLOAD_BYTES:
            raise WireError(f"arrays of {size / 2**30:.1f} GiB in one message (limit {MAX_PAYLOAD_BYTES >> 30} GiB)")
        try:
            message["data"] = unpack(message["data"], self._read(size))
        except (ValueError, TypeError, MemoryError) as error:
            raise WireError(f"no message: {error}") from error
        return dict(message)

    def close(self) -> None:
        """Closes this end."""
        self.connection.close()

    def _read(self, size: int) -> bytearray:
        buffer = bytearray(size)
        view, done = memoryview(buffer), 0
        while done < size:
            self._wait()
            try:
                count = self.connection.recv_into(view[done:])
            except OSError as error:
                raise Closed(str(error)) from error
            if count == 0:
                raise Closed("end of stream")
            done += count
        return buffer

    def _wait(self) -> None:
        while True:
            watched = [self.connection.fileno()] + ([self.while_waiting[0]] if self.while_waiting else [])
            remaining = None if self.deadline is None else self.deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise Late
            ready = select.select(watched, [], [], remaining)[0]
            if self.while_waiting and self.while_waiting[0] in ready:
                self.while_waiting[1]()
            if self.connection.fileno() in ready:
                return
