from __future__ import annotations

from task_files import SINGLE

from evaluator.native_module import load_reference


def test_reference_of_a_one_file_task_loads_without_the_solutions_imports(tmp_path):
    path = tmp_path / "t.py"
    path.write_text(
        SINGLE.replace("import cupy", "import no_such_package_for_gpus as cupy\nFACTOR = 2\nUNUSED = 1 / 0", 1).replace(
            "return 2 * x\n\n\ndef run", "return FACTOR * x\n\n\ndef run"
        )
    )
    module = load_reference(path)
    assert module.reference(21) == 42
    assert not hasattr(module, "run")


def test_reference_alone_loads_whole(tmp_path):
    path = tmp_path / "reference.py"
    path.write_text("import math\nSCALE = 3\n\ndef make_inputs(rng): return {}\n\ndef reference(x): return SCALE * x\n")
    module = load_reference(path)
    assert module.reference(2) == 6
    assert module.math.pi > 3
