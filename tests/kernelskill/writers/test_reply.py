"""A module is found in whatever form a model answers."""

import pytest

from kernelskill.writers.reply import Fault, Reply, read_reply

MODULE = "import cupy\n\n\ndef run(x):\n    return x\n"


@pytest.mark.parametrize("text", [
    f"```python\n{MODULE}```", f"Sure!\n\n```py\n{MODULE}```\nHope it helps.", f"~~~python\n{MODULE}~~~", f"```\n{MODULE}```",
    f"````python\n{MODULE}````", MODULE, f"  ```python\n{MODULE}  ```", '{"notes": "n", "code": "def run(x):\\n    return x"}',
    '```json\n{"notes": "", "code": "```python\\ndef run(x):\\n    return x\\n```"}\n```',
    f"```cuda\n__global__ void k();\n```\n```python\n{MODULE}```",
    f"```python\nprint('how to use it ' * 100, {list(range(200))})\n```\n```python\n{MODULE}```",
])
def test_the_module_is_found(text):
    found = read_reply(text, "stop", "run")
    assert isinstance(found, Reply) and "def run(x):" in found.code and "`" not in found.code


def test_notes_are_what_stands_around_the_block():
    assert read_reply(f"I use float4.\n```python\n{MODULE}```\nDone.", "stop", "run").notes == "I use float4.\n\nDone."


def test_a_cuda_string_may_hold_anything():
    module = MODULE + 'S = r"""\n// ~~~ not a fence\n__global__ void k() {}\n"""\n'
    assert read_reply(f"```python\n{module}```", "stop", "run").code == module


@pytest.mark.parametrize("text, finish, kind", [
    (f"```python\n{MODULE}", "length", "truncated"), (f"```python\n{MODULE}", "stop", "no_code"), (" \n", "stop", "empty"),
    ("I cannot do that.", "stop", "refused"), (MODULE, "content_filter", "refused"), ("<html>busy</html>", "stop", "no_code"),
    ("```python\nclass ModelNew: pass\n```", "stop", "no_entry"), ("```python\ndef run(x)\n```", "stop", "not_python"),
    ("```python\nx = '\x00'\n```", "stop", "not_python"),
])
def test_what_holds_no_module_is_told_in_words_for_the_model(text, finish, kind):
    found = read_reply(text, finish, "run")
    assert isinstance(found, Fault) and found.kind == kind and len(found.message) > 20
