"""`python -m evaluator.profile_target SOCKET [unpooled]`: the process that runs a solution under one of NVIDIA's tools.

It connects to the judge, reads the request, limits itself, and answers the same messages as a runner. The tools' own
libraries work inside this process and write files, so it has no system-call filter; only solutions that passed get here.
`unpooled`: every array is an allocation of its own, so that a tool sees where it ends.
"""

from __future__ import annotations

import os
import resource
import socket
import sys

from evaluator.channel import Channel
from evaluator.launch import serve
from evaluator.types import Request

FILE_BYTES = 64 << 20
"""Largest file that the process may write."""
CPU_SECONDS = 600


def main(arguments: list[str]) -> int:
    """Runs until the judge hangs up."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(arguments[0])
    channel = Channel(connection)
    request = Request.model_validate_json(channel.receive()["request"])
    limit_process()
    if "unpooled" in arguments and request.mode == "cuda":  # the stand-in has no pool
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
        import cupy

        cupy.cuda.set_allocator(None)
    serve(channel, request, "profile")
    return 0


def limit_process() -> None:
    """Limits that can only be lowered from then on."""
    for kind, value in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
