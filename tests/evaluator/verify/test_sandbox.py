"""What bubblewrap is told: on a GPU the driver's devices and libraries, and nothing of them otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator import sandbox


def pairs(command: list[str], option: str) -> set[str]:
    return {command[i + 1] for i, word in enumerate(command) if word == option}


@pytest.fixture
def wrapped(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: "/usr/bin/bwrap")
    (tmp_path / "cuda").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path / 'cuda'}:/nowhere")

    def made(mode: str) -> list[str]:
        request = bench.request(bench.native("", [{"n": 1}]), "").model_copy(update={"mode": mode})
        return sandbox.wrapped(["python"], request, {}, tmp_path)

    return made


def test_devices_are_bound_on_a_gpu_only(wrapped, monkeypatch):
    glob = Path.glob
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [Path("/dev/nvidia0"), Path("/dev/nvidia1")]
                        if str(self) == "/dev" else glob(self, pattern))
    devices = pairs(wrapped("cuda"), "--dev-bind-try")
    assert {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"} <= devices
    assert "/sys" in pairs(wrapped("cuda"), "--ro-bind")
    assert pairs(wrapped("sim"), "--dev-bind-try") == set()


def test_libraries_that_variables_name_can_be_read(wrapped, tmp_path):
    readable = pairs(wrapped("cuda"), "--ro-bind")
    assert str(tmp_path / "cuda") in readable and "/nowhere" not in readable
    assert str(Path.home()) not in readable


def test_without_bubblewrap_the_command_is_as_it_was(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)
    request = bench.request(bench.native("", [{"n": 1}]), "")
    assert sandbox.wrapped(["python", "x"], request, {}, tmp_path) == ["python", "x"]
    assert sandbox.read_only(["python"], {}, tmp_path) == ["python"]
