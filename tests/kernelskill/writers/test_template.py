from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from writer_cases import apply, cuda_of, make_task, reached, tasks

from evaluator.compile import compile_cuda
from evaluator.resources import kernel_resources
from kernelskill.errors import WriterError
from kernelskill.model import MethodApplication
from kernelskill.writers.template import TemplateWriter, planline
from kernelskill.writers.template.families import FAMILIES
from kernelskill.writers.template.family import plan_from, plan_values

NAMES = sorted(tasks())


@pytest.mark.parametrize("name", NAMES)
def test_reached_plans_compile_and_read_back(name):
    task, writer = tasks()[name], TemplateWriter()
    for source, path in reached(task, walks=1).items():
        compile(source, "solution.py", "exec")
        assert compile_cuda(cuda_of(source)).cubin, path
        plan, methods = writer.plan_of(task, source)
        assert tuple(str(m) for m in methods) == path
        assert writer.render(task, plan, methods) == source
        assert plan_from(FAMILIES[task.family].plan_type, plan_values(plan)) == plan


@pytest.mark.parametrize("name", NAMES)
def test_a_method_changes_the_code_and_leaves_its_name_in_the_header(name):
    task, writer = tasks()[name], TemplateWriter()
    start = writer.start(task)
    for method, application in writer.applicable(task, start).items():
        child = apply(task, start, application)
        assert cuda_of(child) != cuda_of(start) or "block" in json.dumps(planline.find(child).plan), method
        assert f"1. {application}" in child


@pytest.mark.parametrize(("name", "methods"), [
    ("bias_gelu", ["work_per_thread", "work_per_thread", "vectorized_access", "read_only_cache"]),
    ("softmax", ["block_per_row_reduction", "register_caching", "vectorized_access"]),
])
def test_a_block_of_1024_threads_has_the_registers_it_needs(name, methods):
    task = tasks()[name]
    source = apply(task, TemplateWriter().start(task), *methods)
    tuned = apply(task, source, MethodApplication(method="launch_tuning", params={"threads": 1024}))
    assert all(r.registers * 1024 <= 65536 for r in kernel_resources(compile_cuda(cuda_of(tuned))))


def test_same_bytes_across_hash_seeds():
    program = "from writer_cases import *; print([source for name in tasks() for source in reached(tasks()[name], 1)])"
    here = f"{Path.cwd()}:{Path(__file__).parent}"
    outputs = {
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True,
                       env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": here}).stdout
        for seed in ("0", "7")
    }
    assert len(outputs) == 1


def test_parameters_that_were_tried_are_not_offered_again():
    task, writer = tasks()["softmax"], TemplateWriter()
    start, tried = writer.start(task), []
    while "launch_tuning" in (offered := writer.applicable(task, start, tried)):
        assert offered["launch_tuning"] not in tried
        tried.append(offered["launch_tuning"])
    assert {t.params["threads"] for t in tried} == {32, 128, 256}


@pytest.mark.parametrize(("name", "methods", "refused", "reason"), [
    ("sum", [], "warp_shuffle_reduction", "one thread owns a row"),
    ("sum", [], "online_algorithm", "reads the row once for its statistics already"),
    ("softmax", [], "register_caching", "too long for its registers"),
    ("softmax", ["vectorized_access"], "vectorized_access", "16 bytes wide already"),
    ("bias_gelu", [], "loop_unrolling", "no loop to unroll"),
    ("bias_gelu", ["kernel_fusion"], "kernel_fusion", "one kernel already"),
    ("bias_gelu", [], "fast_math_intrinsics", "faster intrinsic"),
    ("bias_gelu", [], "register_blocking", "no method 'register_blocking'"),
])
def test_refusals_say_why(name, methods, refused, reason):
    task, writer = tasks()[name], TemplateWriter()
    source = apply(task, writer.start(task), *methods)
    assert reason in writer.explain(task, source, refused)
    assert refused not in writer.applicable(task, source)
    with pytest.raises(WriterError, match=reason):
        apply(task, source, refused)


def test_parameters_outside_the_choices_are_refused_with_the_choices():
    task = tasks()["softmax"]
    with pytest.raises(WriterError, match=r"launch_tuning\(threads=128\); launch_tuning\(threads=32\)"):
        apply(task, TemplateWriter().start(task), MethodApplication(method="launch_tuning", params={"threads": 77}))


def test_unknown_family_names_the_known_ones():
    with pytest.raises(WriterError, match="declares family 'fft'; the templates know elementwise, row_reduction"):
        TemplateWriter().start(make_task("fft", "", {}))


def test_a_solution_changed_by_hand_is_not_taken_for_its_plan():
    task, writer = tasks()["softmax"], TemplateWriter()
    changed = writer.start(task).replace("total += ", "total += 1.0f + ")
    assert writer.applicable(task, changed) == {}
    with pytest.raises(WriterError, match="changed after the template writer wrote it"):
        apply(task, changed, "vectorized_access")


def test_a_start_by_hand_has_the_naive_plan_and_a_stranger_has_none():
    start = 'import cupy\nSOURCE = r"""__global__ void a() {}"""\n'
    arguments = {"inputs": {"x": ["n"], "b": ["n"]}, "shape": ["n"]}
    task, writer = make_task("elementwise", "gelu(x + b)", arguments, start), TemplateWriter()
    plan, methods = writer.plan_of(task, start)
    assert plan.fused and methods == ()
    with pytest.raises(WriterError, match="another writer wrote it"):
        writer.plan_of(task, start + "# changed")


def test_a_broken_plan_line_is_named_with_its_line():
    task, writer = tasks()["softmax"], TemplateWriter()
    source = writer.start(task).replace('"version": 1', '"version": 9')
    with pytest.raises(WriterError, match=r"line \d+\) cannot be read: version 9, expected 1"):
        writer.plan_of(task, source)


def test_an_expression_outside_the_vocabulary_is_refused_by_name():
    task = make_task("elementwise", "bessel(x)", {"inputs": {"x": ["n"]}, "shape": ["n"]})
    with pytest.raises(WriterError, match=r"'bessel\(x\)' in the operation"):
        TemplateWriter().start(task)


def test_a_broadcast_along_scattered_axes_is_refused():
    task = make_task("elementwise", "x + y", {"inputs": {"x": ["a", "b", "c"], "y": ["a", 1, "c"]}, "shape": ["a", "b", "c"]})
    with pytest.raises(WriterError, match="does not broadcast"):
        TemplateWriter().start(task)
