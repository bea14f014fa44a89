"""What the doctor says of parts that are missing: what that disables, and how to get them."""

import importlib.metadata
import shutil

import pytest

from evaluator import sandbox
from kernelskill import doctor


@pytest.mark.parametrize(("name", "extra", "disables"), [
    ("mcp", "mcp", "kernelskill mcp"), ("litellm", "llm", "a language model"), ("torch", "torch", "KernelBench tasks"),
])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, name, extra, disables):
    found = importlib.metadata.version

    def version(distribution):
        if distribution == name:
            raise importlib.metadata.PackageNotFoundError(name)
        return found(distribution)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(doctor, "_measuring_tools", lambda: iter(()))
    check = next(check for check in doctor.examine() if check.name == name)
    assert check.state == "missing" and not check.needed and disables in check.disables
    assert check.install == f"pip install 'kernelskill[{extra}]'"


@pytest.mark.parametrize(("path", "state", "said"), [
    (None, "missing", "apt install bubblewrap"), ("/usr/bin/bwrap", "broken", "allow unprivileged user namespaces"),
])
def test_without_bubblewrap_it_says_what_stays_and_what_to_do(monkeypatch, path, state, said):
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: path)
    check = doctor._bubblewrap()
    assert check.state == state and said in check.install
    assert check.disables == "hiding the user's files from solutions (limits and the system-call filter stay)"
