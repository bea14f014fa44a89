import pytest

from kernelskill.errors import RunError
from kernelskill.memory.store import Store, solution_digest

SOLUTION = '''"""A solution."""
import cupy
CODE = r"""
extern "C" __global__ void k(float* x) { x[0] = 1.0f; }
"""
def run(x):
    return x
'''


@pytest.mark.parametrize(
    "old, new",
    [
        ('"""A solution."""', '"""Another docstring."""'),
        ("import cupy\n", "import cupy  # the GPU\n\n\n"),
        ("{ x[0] = 1.0f; }", "{\n  // first element\n  x[0] = 1.0f; /* done */\n}"),
        ("def run(x):\n", "def run(x):\n    # nothing to do\n"),
    ],
)
def test_what_does_not_change_the_code_does_not_change_the_digest(old, new):
    assert old in SOLUTION
    assert solution_digest(SOLUTION.replace(old, new)) == solution_digest(SOLUTION)


@pytest.mark.parametrize(
    "old, new",
    [
        ("1.0f", "2.0f"),
        ("return x", "return -x"),
        ("float*", "double*"),
        ('CODE = r"""\n', 'CODE = r"""\n#define A\n'),
    ],
)
def test_what_changes_the_code_changes_the_digest(old, new):
    assert old in SOLUTION
    assert solution_digest(SOLUTION.replace(old, new)) != solution_digest(SOLUTION)


def test_code_that_is_no_python_has_a_digest_too():
    assert solution_digest("def (") != solution_digest("def ((")


def test_store_keeps_the_first_text_and_names_what_is_missing(tmp_path):
    store = Store(tmp_path / "store")
    store.put("abc", "one", ".py")
    store.put("abc", "two", ".py")
    assert store.get("abc", ".py") == "one"
    with pytest.raises(RunError, match=r"no object missing\.py"):
        store.get("missing", ".py")
    assert [p.name for p in store.folder.iterdir()] == ["abc.py"]


def test_the_digest_does_not_depend_on_the_python_version():
    assert solution_digest(SOLUTION) == "d4d955867e3ebd27344c"
