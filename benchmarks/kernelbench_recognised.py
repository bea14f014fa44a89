"""Which KernelBench problems the built-in templates recognise, and whether their naive kernels are right on small shapes.

`python -m benchmarks.kernelbench_recognised DIR [IDS]` proves every problem, writes its start (for levels 2 and 3 also the one
that keeps convolutions and matrix products as library calls), runs it in the simulator on two small sizes of the problem beside
the reference, and writes `results/kernelbench_recognised.json` and the table in docs/writers.md. It goes on where it was
interrupted. `render` writes the table only. No line of KernelBench is copied.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import resource
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.examples import RESULTS, ROOT
from kernelskill.errors import KernelSkillError
from kernelskill.model import Task
from kernelskill.suites.discover import SuiteTask, find_tasks, select
from kernelskill.tasks import load_task
from kernelskill.writers.template import TemplateWriter
from kernelskill.writers.template.planline import find

RECORD = RESULTS / "kernelbench_recognised.json"
PAGE = ROOT / "docs" / "writers.md"
MARKERS = re.compile(r"(<!-- recognised:begin -->\n).*?(<!-- recognised:end -->)", re.DOTALL)
LIBRARY = ("conv", "matmul")
SIZES = 2
SECONDS = 60
"""Processor time for the simulated calls of one solution."""
LITTLE, MOST_WORK = 1e6, 1e8
"""Multiply-adds: small problems of at most the first are run, else the smallest one up to the second."""
RTOL = 1e-3
"""Relative, and relative to the outputs' root mean square."""
Row = dict[str, Any]


def main(arguments: list[str]) -> None:
    """Builds the record, or only renders it."""
    record: dict[str, Row] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if arguments[0] != "render":
        preloaded()
        chosen = select(find_tasks(Path(arguments[0])), ids=arguments[1] if len(arguments) > 1 else "")
        for part, allowed in (("kernels", ()), ("library", LIBRARY)):
            for task in chosen:
                kept = record.setdefault(task.key, {"name": task.path.stem})
                if _open(kept.get(part)) and (part == "kernels" or task.level != 1):
                    kept[part] = row(task, allowed)
                    print(task.key, part, json.dumps(kept[part]), flush=True)
                    write(record)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKERS.sub(lambda m: m[1] + table(record) + "\n" + m[2], page), encoding="utf-8")


def _open(found: Row | None) -> bool:
    """Whether the row is still to be made: not there, or recognised and not run."""
    return found is None or ("as" in found and "simulated" not in found and not found.get("nothing_kept"))


def write(record: dict[str, Row]) -> None:
    """The record, a problem a line."""
    ordered = sorted((key for key in record if "kernels" in record[key]), key=lambda key: tuple(map(int, key.split("/"))))
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(record[key])}" for key in ordered)
    RECORD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def preloaded() -> None:
    """What every child needs and is slow to import."""
    import torch._dynamo
    import torch.utils.flop_counter  # noqa: F401

    from evaluator.simulator import standin  # noqa: F401


def row(which: SuiteTask, allowed: tuple[str, ...]) -> Row:
    """How one problem is recognised, and what its start does in the simulator; the reason where it is not recognised."""
    writer = TemplateWriter()
    try:
        task = load_task(which.path).allowing(allowed)
        described, source = writer.describe(task), writer.start(task)
    except KernelSkillError as error:
        return {"refused": error.message}
    line = find(source)
    assert line is not None
    kept = source.split(" library calls kept")[0].rsplit(" ", 1)[-1] if " library calls kept" in source else "0"
    found = {"as": line.family, "heaviest": described.family, "kernels": source.count("__global__ void"),
             "library_calls": int(kept)}
    return {**found, "nothing_kept": True} if allowed and kept == "0" else {**found, "simulated": simulated(task, source)}


def simulated(task: Task, source: str) -> str:
    """`right`, or what went wrong, of the solution in a process of its own."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(task, source, send))
    process.start()
    send.close()
    try:
        return str(receive.recv()) if receive.poll(10 * SECONDS) else f"not finished in {10 * SECONDS} s"
    except EOFError:
        return f"not finished in {SECONDS} s of processor time"
    finally:
        process.kill()
        process.join()


def _child(task: Task, source: str, send: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        send.send(judge(task, source))
    except Exception as error:
        send.send(f"{type(error).__name__}: {str(error)[:200]} ({traceback.extract_tb(error.__traceback__)[-1].name})")


def judge(task: Task, source: str) -> str:
    """Runs the solution beside the reference on small sizes; the first difference or finding, else `right`."""
    import torch

    from evaluator.kernelbench_module import load_module
    from evaluator.simulator import standin
    from kernelskill import assembly

    torch.set_num_threads(1)
    session = standin.Session(device=assembly.choose_device(assembly.Options(device="sim"))[1])
    run = 0
    for sizes in _small(task):
        torch.manual_seed(1)
        module = load_module(task.spec.path, sizes)
        theirs, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
        standin.install(session)
        try:
            wrong = _compared(theirs, module.get_init_inputs(), inputs, source)
        finally:
            standin.uninstall()
        errors = [f.message for f in session.findings if f.severity == "error"]
        if wrong or errors:
            return (wrong or f"finding: {errors[0]}")[:200] + f" at {sizes}"
        run += 1
    return "right" if run else "no problem is small enough"


def _small(task: Task) -> list[dict[str, int]]:
    """Sizes that the reference takes, of little work; its work is counted on tensors that hold no data."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from evaluator.kernelbench_module import load_module

    work: list[tuple[float, dict[str, int]]] = []
    for sizes in (*task.spec.check_sizes, *task.spec.last_sizes):
        try:
            with torch.device("meta"), FlopCounterMode(display=False) as counter, torch.no_grad():
                module = load_module(task.spec.path, sizes)
                module.Model(*module.get_init_inputs())(*module.get_inputs())
        except Exception:  # sizes that the reference refuses
            continue
        work.append((float(counter.get_total_flops()) / 2, sizes))
    little = [sizes for flops, sizes in work if flops <= LITTLE]
    least = sorted((flops, k) for k, (flops, _) in enumerate(work))[:1]
    return little[:SIZES] or [work[k][1] for flops, k in least if flops <= MOST_WORK]


def _compared(theirs: Any, constructor: list[Any], inputs: list[Any], source: str) -> str:
    """Where outputs or buffers differ; "" where they agree."""
    import torch

    solution: dict[str, Any] = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), solution)
    ours = solution["ModelNew"](*constructor)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    ours.train(theirs.training)
    with torch.no_grad():
        expected = theirs(*[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])
        got = ours(*inputs)
    pairs = {"the output": (got, expected)}
    pairs |= {name: (ours.get_buffer(name), buffer) for name, buffer in theirs.named_buffers()}
    for name, (a, b) in pairs.items():
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name} is {a.dtype} {list(a.shape)}, not {b.dtype} {list(b.shape)}"
        scale = float(b.double().pow(2).mean().sqrt()) if b.numel() else 0.0
        if not torch.allclose(a.double(), b.double(), RTOL, RTOL * scale, equal_nan=True):
            gap = float((a.double() - b.double()).abs().max())
            return f"{name} differs by {gap:.3g}, its root mean square is {scale:.3g}"
    return ""


def table(record: dict[str, Row]) -> str:
    """Problems of each level by what became of them, and the reasons of those that are not recognised."""
    head = ["| level | looked at | recognised | starts run in the simulator | right | with `--allow-library conv,matmul`: a "
            "library call kept | run | right |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for level in ("1", "2", "3"):
        rows = [r for key, r in record.items() if key.startswith(f"{level}/")]
        known = [r["kernels"] for r in rows if "as" in r["kernels"]]
        kept = [r["library"] for r in rows if r.get("library", {}).get("library_calls")]
        counts = (len(rows), len(known), *_run(known), len(kept), *_run(kept))
        head.append(f"| {level} | {' | '.join(map(str, counts))} |")
    reasons = Counter(_reason(r["kernels"]["refused"]) for r in record.values() if "refused" in r["kernels"])
    listed = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
    late = Counter(r["kernels"]["simulated"].split(" at {")[0] for r in record.values()
                   if r["kernels"].get("simulated", "right") != "right")
    open_ = "; ".join(f"{reason} ({count})" for reason, count in late.most_common())
    return "\n".join([*head, "", f"Not recognised: {listed or 'none'}.", "", f"Run, not seen right: {open_ or 'none'}."])


def _run(rows: list[Row]) -> tuple[int, int]:
    """How many starts were run, and how many of them were right."""
    return sum("simulated" in r for r in rows), sum(r.get("simulated") == "right" for r in rows)


def _reason(message: str) -> str:
    """The part of a refusal that says what is missing."""
    if " at sizes " in message:
        return "fixed to the full sizes"
    return message.split(": ")[-1].split(" (")[0].split(" <class")[0]


if __name__ == "__main__":
    started = time.time()
    main(sys.argv[1:])
    print(f"{time.time() - started:.0f} s", file=sys.stderr)
