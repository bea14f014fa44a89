"""Method cards: the shipped ones load and their worked examples agree; broken cards and broken promises say what is wrong."""

import ast
import operator
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from evaluator.compile import compile_cuda
from evaluator.simulator import interpreter, standin
from kernelskill import methods
from kernelskill.errors import MethodError
from kernelskill.facts.device import load_device
from kernelskill.facts.solution_source import read_solution
from kernelskill.methods import (
    Family,
    broken_precision,
    broken_promises,
    broken_scope,
    load_methods,
    matching_methods,
    obstacles,
    unmet_preconditions,
)
from kernelskill.model import Fact
from kernelskill.yamlsource import parse

FOLDER = Path(__file__).parents[2] / "knowledge" / "methods"
CARDS = load_methods(FOLDER)
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv}


def facts(**values):
    return {name: Fact(name=name, value=value, provenance="simulated") for name, value in values.items()}


def number(text, sizes):
    """Value of an expression of a launch line or a shape."""
    def walk(node):
        if isinstance(node, ast.BinOp):
            return ARITHMETIC[type(node.op)](walk(node.left), walk(node.right))
        return node.value if isinstance(node, ast.Constant) else sizes[node.id]
    return walk(ast.parse(str(text), mode="eval").body)


def make_arrays(example, rng_seed=5):
    """Inputs (float32 normal, or int32 where the card says so); outputs and scratch full of NaN."""
    rng = np.random.default_rng(rng_seed)
    shape = {name: tuple(number(n, example.sizes) for n in dims)
             for name, dims in [*example.inputs.items(), *example.outputs.items(), *example.scratch.items()]}
    arrays = {name: rng.integers(0, example.integers[name], shape[name], dtype=np.int32) if name in example.integers
              else rng.standard_normal(shape[name], dtype=np.float32) for name in example.inputs}
    return arrays | {name: np.full(shape[name], np.nan, np.float32) for name in [*example.outputs, *example.scratch]}


def run_cuda(side, example):
    """Outputs of one side of a worked example, run in the simulator with all checks; unwritten elements are NaN."""
    arrays = make_arrays(example)
    buffers = [interpreter.Buffer(a.ctypes.data, a.nbytes, name, name not in example.inputs) for name, a in arrays.items()]
    module = interpreter.Module(compile_cuda(side.source, arch=example.arch).ptx)
    for launch in side.launches:
        parameters = module.parameters(launch.kernel)
        assert len(parameters) == len(launch.args)
        packed = bytearray(max(p.offset + p.size for p in parameters))
        for parameter, name in zip(parameters, launch.args, strict=True):
            value = arrays[name].ctypes.data if name in arrays else example.sizes[name]
            assert (parameter.size == 8) == (name in arrays), name
            packed[parameter.offset:parameter.offset + parameter.size] = value.to_bytes(parameter.size, "little")
        extent = [tuple((*(number(e, example.sizes) for e in part), 1, 1)[:3]) for part in (launch.grid, launch.block)]
        result = interpreter.run(module, launch.kernel, extent[0], extent[1], bytes(packed), buffers,
                                 cooperative="this_grid()" in side.source)
        assert [f.message for f in result.findings] == []
    return {name: arrays[name] for name in example.outputs}


def run_python(side, example):
    """The output of `run(inputs...)` on the simulated device; the second call's, which must not differ from the first's."""
    session = standin.Session(device=load_device("h200"))
    standin.install(session)
    try:
        import cupy

        scope = {}
        exec(compile(side.source, "worked example", "exec"), scope)
        inputs = [cupy.asarray(a) for name, a in make_arrays(example).items() if name in example.inputs]
        first, second = (scope["run"](*inputs).get() for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert [f.message for f in session.findings] == []
        return {next(iter(example.outputs)): second}
    finally:
        standin.uninstall()


def run_side(side, example):
    return (run_cuda if side.language == "cuda" else run_python)(side, example)


def test_the_cards_of_all_families_load():
    assert len(CARDS) >= 45
    families = {family for card in CARDS.values() for family in card.families}
    assert families == set(get_args(Family))


RUNNABLE = sorted(name for name, card in CARDS.items() if not card.example.unsupported)
COMPILED_ONLY = {"texture_path", "warpgroup_mma", "cuda_graph_replay"}


@pytest.mark.parametrize("method", RUNNABLE)
def test_both_sides_of_the_worked_example_agree(method):
    card = CARDS[method]
    sides = {name: run_side(side, card.example) for name, side in card.worked_example().items()}
    for name, before in sides["before"].items():
        assert np.isfinite(before).all(), f"{name}: not every element was written"
        np.testing.assert_allclose(sides["after"][name], before, rtol=card.example.rtol, atol=card.example.rtol, err_msg=name)


def test_only_named_cards_have_an_example_that_the_simulator_cannot_run():
    assert {name for name, card in CARDS.items() if card.example.unsupported} == COMPILED_ONLY


@pytest.mark.parametrize("method", sorted(COMPILED_ONLY))
def test_what_the_simulator_cannot_run_compiles_and_is_refused_by_name(method):
    """The `before` side runs; the `after` side compiles, and running it names what is not supported."""
    example = CARDS[method].example
    before, after = (CARDS[method].worked_example()[side] for side in ("before", "after"))
    assert all(np.isfinite(array).any() for array in run_side(before, example).values())
    if after.language == "cuda":
        ptx = compile_cuda(after.source, arch=example.arch).ptx
        with pytest.raises(interpreter.Unsupported):
            run_entry(interpreter.Module(ptx))
    else:
        compile_cuda(read_solution(after.source).cuda)
        with pytest.raises(Exception, match=r"begin_capture|Graph"):
            run_python(after, example)


def run_entry(module):
    """Lowers the module's only kernel, which is where an unsupported instruction is refused."""
    (kernel,) = module.entries
    buffer = np.zeros(4096, np.float32)
    parameters = module.parameters(kernel)
    packed = bytearray(max(p.offset + p.size for p in parameters))
    for p in parameters:
        value = buffer.ctypes.data if p.size == 8 else 1
        packed[p.offset:p.offset + p.size] = value.to_bytes(p.size, "little")
    interpreter.run(module, kernel, (1, 1, 1), (32, 1, 1), bytes(packed),
                    [interpreter.Buffer(buffer.ctypes.data, buffer.nbytes, "buffer", True)])


@pytest.mark.parametrize("method", sorted(CARDS))
def test_the_two_sides_are_different_programs(method):
    sides = CARDS[method].worked_example()
    assert sides["before"] != sides["after"]


def test_every_card_has_the_sections_that_a_writer_needs():
    sections = ("## Mechanism", "## When it pays", "## When it backfires", "## Steps", "## Worked example")
    assert [(card.id, name) for card in CARDS.values() for name in sections if name not in card.body] == []


SECTORS = ("global_load_sectors_per_request", "global_store_sectors_per_request")
LAUNCH = {"block_threads": 256, "grid_blocks": 64, "global_load_sectors_per_request": 4.0, "shared_bytes_per_block": 0}
# Method -> parent's facts, child's facts that keep the promise, child's facts that break it, words of the complaint.
PROMISES = {
    "vectorized_access": (
        {}, {"vector_load_bytes": 16, "vector_store_bytes": 4}, {"vector_load_bytes": 4, "vector_store_bytes": 4},
        ["vector_load_bytes at least 16 (is 4)", "vector_store_bytes at least 16 (is 4)"]),
    "coalesced_access": (
        dict(zip(SECTORS, (32.0, 4.0), strict=True)), dict(zip(SECTORS, (4.0, 4.0), strict=True)),
        dict(zip(SECTORS, (32.0, 4.0), strict=True)), ["global_load_sectors_per_request below the parent's 32 (is 32)"]),
    "shared_memory_tiling": (
        {}, {"uses_shared_memory": True}, {"uses_shared_memory": False}, ["uses_shared_memory equal to true (is false)"]),
    "bank_conflict_padding": (
        {"shared_wavefronts_ratio": 16.5}, {"shared_wavefronts_ratio": 1.0}, {"shared_wavefronts_ratio": 16.5},
        ["shared_wavefronts_ratio below the parent's 16.5 (is 16.5)"]),
    "register_blocking": (
        {"register_tile_elements": 1}, {"register_tile_elements": 16}, {"register_tile_elements": 2},
        ["register_tile_elements at least 4 (is 2)"]),
    "online_algorithm": (
        {"input_passes": 3}, {"input_passes": 2, "uses_online_reduction": False},
        {"input_passes": 3, "uses_online_reduction": False}, ["input_passes below the parent's 3 (is 3)"]),
    "register_caching": ({"input_passes": 3}, {"input_passes": 1}, {"input_passes": 3}, ["input_passes below the parent's 3"]),
    "kernel_fusion": ({"kernel_launches": 2}, {"kernel_launches": 1}, {"kernel_launches": 2}, ["below the parent's 2 (is 2)"]),
    "launch_tuning": (
        LAUNCH, {**LAUNCH, "block_threads": 128, "grid_blocks": 128}, LAUNCH,
        ["block_threads different from the parent's 256 (is 256)"]),
    "block_per_row_reduction": (
        {}, {"threads_per_row": 256, "reduction_style": "shared_tree"}, {"threads_per_row": 1, "reduction_style": "serial"},
        ["threads_per_row at least 64 (is 1)", "reduction_style one of shared_tree, warp_shuffle (is serial)"]),
    "atomic_privatization": (
        {"global_atomic_requests": 5000}, {"sass_shared_atomics": 2, "global_atomic_requests": 5000},
        {"sass_shared_atomics": 0, "global_atomic_requests": 5000},
        ["sass_shared_atomics at least 1 (is 0)", "global_atomic_requests below the parent's 5000 (is 5000)"]),
    "persistent_kernel": ({"waves_per_sm": 12.0}, {"waves_per_sm": 1.0}, {"waves_per_sm": 6.0}, ["at most 1 (is 6)"]),
    "split_k": ({"grid_blocks": 64}, {"grid_blocks": 256}, {"grid_blocks": 64}, ["grid_blocks above the parent's 64 (is 64)"]),
    "tensor_cores": (
        {}, {"sass_tensor": 8, "uses_tensor_cores": False}, {"sass_tensor": 0, "uses_tensor_cores": False},
        ["sass_tensor at least 1 (is 0)"]),
    "cuda_graph_replay": ({}, {"uses_graph": True}, {"uses_graph": False}, ["uses_graph equal to true (is false)"]),
    "register_pressure_reduction": (
        {"spill_bytes": 64, "sass_local": 8, "registers_per_thread": 255},
        {"spill_bytes": 0, "sass_local": 0, "registers_per_thread": 255},
        {"spill_bytes": 96, "sass_local": 8, "registers_per_thread": 255}, ["spill_bytes below the parent's 64 (is 96)"]),
    "warp_uniform_branches": (
        {"warp_execution_efficiency_pct": 50.0, "divergent_branch_pct": 30.0, "instructions_executed": 100},
        {"warp_execution_efficiency_pct": 97.0, "divergent_branch_pct": 30.0, "instructions_executed": 100},
        {"warp_execution_efficiency_pct": 50.0, "divergent_branch_pct": 30.0, "instructions_executed": 100},
        ["warp_execution_efficiency_pct above the parent's 50 (is 50)"]),
    "double_buffering": (
        {}, {"uses_double_buffer": True}, {"uses_double_buffer": False, "uses_async_copy": False},
        ["uses_double_buffer equal to true (is false) or uses_async_copy equal to true (is false)"]),
}


@pytest.mark.parametrize("method", sorted(PROMISES))
def test_promises_are_checked_with_values(method):
    parent, kept, broken, words = PROMISES[method]
    assert broken_promises(CARDS[method], facts(**parent), facts(**kept)) == []
    complaint = "; ".join(broken_promises(CARDS[method], facts(**parent), facts(**broken)))
    assert all(word in complaint for word in words), complaint


def test_an_unknown_fact_neither_keeps_nor_breaks_a_promise():
    assert broken_promises(CARDS["vectorized_access"], {}, facts(vector_load_bytes=4)) == []
    assert broken_promises(CARDS["register_caching"], {}, facts(input_passes=3)) == []


def test_a_second_optimisation_in_the_same_step_is_off_method():
    parent = facts(uses_fast_math=False, library_calls=0, uses_tensor_cores=False)
    child = facts(uses_fast_math=True, library_calls=1, uses_tensor_cores=False, vector_load_bytes=16)
    assert broken_promises(CARDS["vectorized_access"], parent, child) == [
        "vectorized_access forbids library_calls above the parent's 0 (is 1)",
        "vectorized_access forbids uses_fast_math different from the parent's false (is true)",
    ]


def test_preconditions_name_what_is_false_and_pass_over_what_is_unknown():
    card = CARDS["bank_conflict_padding"]
    assert unmet_preconditions(card, facts(uses_shared_memory=False)) == [
        "bank_conflict_padding needs uses_shared_memory equal to true (is false)"]
    assert unmet_preconditions(card, facts(uses_shared_memory=True, shared_wavefronts_ratio=8.0)) == []
    assert unmet_preconditions(card, {}) == []


GOOD = (FOLDER / "launch_tuning.md").read_text(encoding="utf-8")
BROKEN = {
    "no front matter": (GOOD.replace("---\n", "", 1), "test_card.md:1:1: error: a card starts with `---`"),
    "not YAML": (GOOD.replace("transpose, matmul]", "transpose, matmul"), "not valid YAML"),
    "unknown field": (GOOD.replace("changes_precision", "changes_precisoin"), "unknown key `changes_precisoin`"),
    "unknown fact": (GOOD.replace("fact: block_threads", "fact: block_thread"), "no fact is called `block_thread`"),
    "wrong type": (GOOD.replace('{fact: block_threads, op: "!=", parent: true}', "{fact: block_threads, value: many}"),
                   "`block_threads` is a number, 'many' is not"),
    "value and parent": (GOOD.replace("parent: true}", "value: 3, parent: true}", 1), "give either `value` or `parent: true`"),
    "no promise": (GOOD.replace("promises:\n  - any:", "promises: []\nx:\n  - any:"), "`promises`: it needs at least"),
    "unknown family": (GOOD.replace("transpose,", "sorting,"), "`sorting` is not one of elementwise, "),
    "a text instead of a list": (GOOD.replace("conflicts: []", "conflicts: none"), "`none` does not fit `conflicts`: it is"),
    "no after example": (GOOD.replace("```cuda after", "```cuda later"), "no ```cuda after block"),
    "no launch line": (GOOD.replace("// launch: scale grid=(n+127)", "// scale grid=(n+127)"),
                       "the `after` example has no `// launch:`"),
    "unknown argument": (GOOD.replace("args=x,y,n", "args=x,z,n"), "launches with unknown `z`"),
    "file name": (GOOD.replace("id: launch_tuning", "id: other_tuning"), "differs from the file name"),
    "a list instead of fields": ("---\n- id\n---\n", "front matter is fields"),
    "unknown method": (GOOD.replace("conflicts: []", "conflicts: [warp_drive]"), "names the unknown method `warp_drive`"),
}


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_a_broken_card_is_refused_with_the_place(tmp_path, what):
    text, message = BROKEN[what]
    assert text != GOOD
    text = text if what == "file name" else text.replace("id: launch_tuning", "id: test_card")
    path = tmp_path / "test_card.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MethodError) as refused:
        load_methods(tmp_path)
    first, second, *_ = str(refused.value).splitlines()
    assert first.endswith("in method cards")
    assert second.startswith(f"{path}:") or second.startswith(f"{path}: ")
    assert message in str(refused.value)


def test_the_line_of_the_wrong_condition_is_named(tmp_path):
    text = GOOD.replace("id: launch_tuning", "id: test_card").replace("fact: grid_blocks", "fact: grid_block")
    line = 1 + text[: text.index("fact: grid_block,")].count("\n")
    (tmp_path / "test_card.md").write_text(text, encoding="utf-8")
    with pytest.raises(MethodError, match=rf"test_card\.md:{line}:16: error: no fact is called `grid_block`"):
        load_methods(tmp_path)


def test_all_errors_of_all_cards_come_at_once_in_an_authors_words(tmp_path):
    wrong = GOOD.replace("summary:", "sumary:").replace("fact: grid_blocks", "fact: grid_block")
    wrong = wrong.replace("conflicts: []", "conflicts: 3")
    for name in ("one", "other"):
        (tmp_path / f"{name}.md").write_text(wrong.replace("id: launch_tuning", f"id: {name}"), encoding="utf-8")
    with pytest.raises(MethodError) as refused:
        load_methods(tmp_path)
    said = str(refused.value)
    for name in ("one", "other"):
        for message in ("unknown key `sumary` [schema]\n  hint: did you mean", "`summary` is missing",
                        "`3` does not fit `conflicts`: it is a list",
                        "no fact is called `grid_block`: did you mean 'grid_blocks'"):
            assert re.search(rf"{name}\.md:\d+:\d+: error: {re.escape(message)}", said), (name, message, said)
    assert not re.search(r"(?i)tuple|pydantic|input should|valid dict", said)


def test_a_card_is_read_once_and_again_when_its_text_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    card = tmp_path / "cards" / "test_card.md"
    card.parent.mkdir()
    card.write_text(GOOD.replace("id: launch_tuning", "id: test_card"), encoding="utf-8")
    first = load_methods(card.parent)
    read = []
    monkeypatch.setattr(methods, "parse", lambda *arguments: read.append(arguments) or parse(*arguments))
    assert load_methods(card.parent) == first
    assert read == []
    card.write_text(card.read_text(encoding="utf-8").replace("precision: false", "precision: true"), encoding="utf-8")
    assert load_methods(card.parent)["test_card"].changes_precision
    assert len(read) == 1


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(MethodError, match="no method cards here"):
        load_methods(tmp_path)


def test_a_method_waits_for_what_it_requires_or_finds_it_in_the_start():
    padding = CARDS["bank_conflict_padding"]
    conflicts = facts(shared_wavefronts_ratio=8.0, task_family="transpose")
    assert obstacles(padding, CARDS, conflicts | facts(uses_shared_memory=False))[-1] == (
        "bank_conflict_padding needs shared_memory_tiling first")
    assert obstacles(padding, CARDS, conflicts | facts(uses_shared_memory=True)) == []
    applied = {"applied.shared_memory_tiling": Fact(name="applied.shared_memory_tiling", value=True, provenance="history")}
    assert obstacles(padding, CARDS, conflicts | applied) == []


def test_a_method_is_kept_from_other_families_and_from_its_rivals():
    assert obstacles(CARDS["split_k"], CARDS, facts(task_family="transpose"))[-1] == (
        "split_k is for matmul, row_reduction, not for transpose")
    assert obstacles(CARDS["warp_scan"], CARDS, {}) == []
    for here, there in (("split_k", "stream_k"), ("fast_math_intrinsics", "polynomial_transcendentals")):
        applied = {f"applied.{there}": Fact(name=f"applied.{there}", value=True, provenance="history")}
        assert f"{here} does not go with {there}, which is applied" in obstacles(CARDS[here], CARDS, applied)


def test_a_method_changes_only_its_part_of_a_solution():
    assert broken_scope(CARDS["launch_tuning"], {"kernels", "launch"}) == []
    assert broken_scope(CARDS["vectorized_access"], {"kernels", "host"}) == [
        "vectorized_access does not change what the host calls besides launching and allocating, the code does"]
    assert broken_scope(CARDS["cuda_graph_replay"], {"kernels", "host"}) == [
        "cuda_graph_replay does not change the kernels, the code does"]


def test_no_card_tells_its_writer_of_another_method():
    pairs = ((card, other) for card in CARDS.values() for other in CARDS if other != card.id)
    assert [(card.id, other) for card, other in pairs if re.search(rf"\b{other}\b", card.body)] == []


def test_only_a_method_that_says_so_narrows_the_precision():
    assert broken_precision(CARDS["vectorized_access"], "fp32", "tf32") == [
        "vectorized_access keeps the precision, the code falls from fp32 to tf32"]
    for card, before, after in (("tensor_cores", "fp32", "tf32"), ("vectorized_access", "fp32", "near_fp32"),
                                ("vectorized_access", "tf32", "tf32"), ("vectorized_access", None, "tf32"),
                                ("vectorized_access", "fp32", None)):
        assert broken_precision(CARDS[card], before, after) == []


def test_code_is_another_methods_only_where_all_of_its_contract_holds():
    parent = facts(vector_load_bytes=4, block_threads=256, threads_per_row=1, library_calls=0, uses_tensor_cores=False,
                   uses_fast_math=False, task_family="row_reduction", task_reduction_length=4096)
    wide = parent | facts(vector_load_bytes=16)
    assert "vectorized_access" in matching_methods(CARDS, parent, wide, {"kernels"})
    assert "vectorized_access" not in matching_methods(CARDS, parent, parent, {"kernels"})
    assert "vectorized_access" not in matching_methods(CARDS, wide, wide, {"kernels"})  # nothing new
    assert "vectorized_access" not in matching_methods(CARDS, parent, wide, {"kernels", "host"})
    assert "vectorized_access" not in matching_methods(CARDS, parent, wide | facts(uses_fast_math=True), {"kernels"})
    assert "cuda_graph_replay" not in matching_methods(CARDS, parent, wide, {"kernels"})
