"""The evaluator's words: what it is asked (`Request`) and what it answers (`Evaluation`), as frozen JSON-able values.

Status names follow flashinfer-bench's vocabulary; an `Evaluation` cannot hold fields that its status forbids.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Mode = Literal["sim", "cuda"]
"""Where a solution runs: in the simulator, or on a GPU with cupy."""
SanitizerTool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
"""Tools of NVIDIA's compute-sanitizer."""
Tool = Literal["ncu", "cupti", "compute-sanitizer"]
"""What measures or checks on a GPU beside the evaluator itself, and may be missing or forbidden."""


CounterSet = Literal["full", "facts"]
"""How much Nsight Compute reads: its full set, or the sections that facts come from (see ncu.py)."""


class Frozen(BaseModel):
    """Base of every value here: immutable, unknown fields refused, JSON in and out."""

    # NaN and infinity are values here (a wrong output element): JSON's null would lose them.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, ser_json_inf_nan="strings")


class Status(str, Enum):
    """The verdict on one solution."""

    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    REJECTED = "REJECTED"
    UNSUPPORTED = "UNSUPPORTED"


INCORRECT = frozenset({Status.INCORRECT_SHAPE, Status.INCORRECT_DTYPE, Status.INCORRECT_NUMERICAL})


class Tolerance(Frozen):
    """`|got - expected| <= atol + rtol * |expected|`, element by element, expected in float64 where the reference can."""

    rtol: float = Field(1e-4, ge=0)
    atol: float = Field(1e-5, ge=0)


Shapes = Literal["general", "exact"]
"""Which sizes a solution must be right at: `general` others than the task's own, too; `exact` the task's own alone."""


class TaskSpec(Frozen):
    """A task as the worker needs it: files to load and plain numbers, no code objects."""

    name: str
    kind: Literal["native", "kernelbench"]
    path: str
    """native: the Python file with `make_inputs(rng, **sizes) -> dict[str, ndarray]` and `reference(**inputs)`.
    kernelbench: the Python file with `Model`, `get_inputs`, `get_init_inputs`."""
    sizes: dict[str, int]
    """The full problem. kernelbench: values of module-level integer constants (as shipped)."""
    check_sizes: tuple[dict[str, int], ...]
    """Problems small enough to verify in the simulator; same keys as `sizes`."""
    last_sizes: tuple[dict[str, int], ...] = ()
    """kernelbench: more sizes, for where the reference refuses too many of `check_sizes`, which are then mere proposals."""
    shapes: Shapes = "general"
    tolerance: Tolerance = Tolerance()
    allow_library: tuple[str, ...] = ()
    """Operators of torch and CuPy that a solution may keep: names (`conv2d`), categories (`conv`), `all` (see library.py)."""
    arithmetic: tuple[int, str] | None = None
    """kernelbench: FLOPs of a call at the full sizes and the operator that has most of them, where they were counted before."""
    allow_tf32: bool = False
    """kernelbench, on a GPU: torch's matrix products and convolutions round their inputs to TF32 in the solution's process."""
    seed: int = 2026


class DeviceSpec(Frozen):
    """Hardware facts of a GPU, from a device card (`knowledge/devices/*.yaml`) or NVML. Sizes in bytes, rates per second."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    sm_clock_hz: float
    dram_bytes_per_s: float
    """Datasheet bandwidth."""
    measured_dram_bytes_per_s: float | None = None
    """Bandwidth that a large device-to-device copy reaches, read + written; None where nobody measured it."""
    fp32_flops_per_s: float
    tf32_flops_per_s: float | None = None
    fp16_flops_per_s: float | None = None
    """Dense tensor-core rate with fp32 accumulation."""
    l2_bytes: int
    l1_shared_bytes_per_sm: int
    """L1 cache and shared memory together."""
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """The opt-in limit for dynamic shared memory of one block."""
    registers_per_sm: int = 65536
    max_threads_per_sm: int = 2048
    max_blocks_per_sm: int = 32
    sources: tuple[str, ...] = ()

    @property
    def arch(self) -> str:
        """The compile target, e.g. `sm_90`."""
        return "sm_{}{}".format(*self.compute_capability)


class Request(Frozen):
    """One evaluation. JSON on the worker's stdin."""

    task: TaskSpec
    solution: str
    """Path of the solution module."""
    mode: Mode = "sim"
    device: DeviceSpec
    """The card of the GPU: simulated (mode sim) or expected (mode cuda)."""
    stages: tuple[Literal["verify", "profile"], ...] = ("verify", "profile")
    """`profile` runs the full sizes: modelled time and counts (sim), measured time (cuda)."""
    timeout_s: float = Field(300.0, gt=0)
    counters: tuple[str, ...] = ()
    """Mode cuda: Nsight Compute metrics to read beside its sections, at the full sizes. Empty: no counters are read."""
    counter_set: CounterSet = "full"
    """Mode cuda: Nsight Compute's full set, or the sections that facts come from, in fewer passes."""
    sanitize: tuple[SanitizerTool, ...] = ()
    """Mode cuda: checks of compute-sanitizer on the check sizes, after the outputs were right."""
    rival: TimeEstimate | None = None
    """Mode cuda: a solution that is not faster than this, as far as the samples say, is neither sanitized nor profiled."""
    timed_only: bool = False
    """Mode cuda: no solution is sanitized or profiled, which takes longer than the timing."""
    baselines: tuple[BaselineName, ...] = ()
    """Mode cuda: what to time beside the solution, in the same session."""
    start: str = ""
    """Path of the task's starting solution, for the baseline `naive_start`."""
    baseline_timeout_s: float = Field(180.0, gt=0)
    """What every baseline may take on top of `timeout_s`: compiling and tuning a model takes a minute."""
    seed: int | None = Field(None, ge=0, lt=1 << 32)
    """Makes the verification's seeds repeatable. None: drawn after the solution was imported, so that it cannot know them."""


    @property
    def limit_s(self) -> float:
        """Seconds that the whole evaluation may take."""
        return self.timeout_s + len(self.baselines) * self.baseline_timeout_s


FindingKind = Literal[
    "out_of_bounds", "misaligned", "shared_race", "uninitialised_shared", "uninitialised_output", "divergent_barrier",
    "deadlock", "runaway", "null_pointer", "argument_mismatch", "non_contiguous_argument", "launch_limit", "input_modified",
    "nondeterministic", "shuffle_outside_mask", "unsupported", "library_call", "guard", "implausible_time",
    "uninitialised_global", "trap",
]


class Finding(Frozen):
    """Something the simulator, the stand-in or a guard saw, with where it was seen."""

    kind: FindingKind
    message: str
    severity: Literal["error", "warning"] = "error"
    kernel: str | None = None
    file: str | None = None
    line: int | None = None
    """Line of the CUDA source (1-based) or, with `file` set, of that Python file."""
    origin: str | None = None
    """Where that CUDA line stands in a file that the person has: `solution.py:41`, or `start.cu:12`."""
    source: str | None = None
    """The text of that line."""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    sizes: dict[str, int] | None = None
    """The problem sizes of the run that showed it."""


class Mismatch(Frozen):
    """The first wrong output element and the case that shows it."""

    output: str
    """Path in the output tree, e.g. `out` or `out[1]`."""
    case: str
    """Input distribution and seed, e.g. `normal seed 7`."""
    sizes: dict[str, int]
    expected_shape: tuple[int, ...] | None = None
    got_shape: tuple[int, ...] | None = None
    expected_dtype: str | None = None
    got_dtype: str | None = None
    index: tuple[int, ...] | None = None
    expected: float | None = None
    got: float | None = None
    max_abs_error: float | None = None
    allowed_error: float | None = None
    wrong_elements: int | None = None
    total_elements: int | None = None


class KernelResources(Frozen):
    """What ptxas and nvdisasm say of one kernel."""

    kernel: str
    registers: int
    static_shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    sass: dict[str, int] = Field(default_factory=dict)
    """Opcode with modifiers -> static count, e.g. `LDG.E.128` -> 4; empty where nvdisasm is missing."""


class LaunchRecord(Frozen):
    """One kernel launch of the profiled run, in the order of launching."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int = 0
    counts: dict[str, float] = Field(default_factory=dict)
    """Vocabulary fact name -> value, of this launch, for the whole grid (names: kernelskill/vocabulary.py)."""
    text: dict[str, str] = Field(default_factory=dict)
    """The same for facts of kind text, e.g. `occupancy_limiter`."""
    library: bool = False
    """Mode cuda: no kernel of the solution's own, but one of torch, cuBLAS, cuDNN or CuPy."""
    time_us: float | None = None
    """Modelled (mode sim), or the median that CUPTI recorded (mode cuda)."""
    terms_us: dict[str, float] = Field(default_factory=dict)
    """Modelled time's named parts in µs (not additive: see the time model)."""
    sampled_blocks: int | None = None
    """Blocks that were executed; None: all of them."""


class GpuState(Frozen):
    """What NVML says of a GPU at one moment; None for what it withholds."""

    name: str
    uuid: str = ""
    driver: str = ""
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    memory_used_bytes: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    """Why the clock was held back: `power_cap`, `sw_thermal`, `hw_thermal`, `hw_slowdown`, `hw_power_brake`, `sync_boost`."""


class RuleResult(Frozen):
    """What one of Nsight Compute's own rules said of a kernel."""

    rule: str
    description: str
    speedup_pct: float | None = None
    """The estimate; None where the rule gives none."""


class KernelProfile(Frozen):
    """One launch as Nsight Compute measured it."""

    kernel: str
    block: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()
    metrics: dict[str, float] = Field(default_factory=dict)
    """By NVIDIA's metric name, times in us and sizes in bytes."""
    rules: tuple[RuleResult, ...] = ()


class Timeline(Frozen):
    """What the GPU did during one call at the full sizes, as CUPTI recorded it: medians over several calls."""

    calls: int
    span_us: float
    """From the start of the first kernel, copy or fill to the end of the last."""
    busy_us: float
    """Part of the span in which one of them ran."""
    longest_gap_us: float
    """The longest stretch of the span in which none ran."""


PrecisionClass = Literal["fp64", "fp32", "near_fp32", "tf32", "fp16", "bf16"]
"""How precise a solution's outputs are, the most precise first (see precision.py)."""


class TimeEstimate(Frozen):
    """A time of the whole solution at the full sizes. `modelled` and `cuda_event` are never mixed."""

    provenance: Literal["modelled", "cuda_event", "cuda_graph"]
    time_us: float
    low_us: float | None = None
    high_us: float | None = None
    """95 % interval of the median (measured times only)."""
    samples: int | None = None
    samples_us: tuple[float, ...] = ()
    """Measured: every sample, in order."""
    limiter: str | None = None
    """Modelled: the dominating term."""
    sampled_inputs: bool = False
    """Modelled: inputs too large to hold were a tile of the task's own values, repeated (see tiles.py)."""


BaselineName = Literal[
    "torch_eager", "torch_eager_fp32", "torch_eager_tf32", "torch_compile", "torch_compile_fp32", "torch_compile_tf32",
    "torch_compile_max_autotune", "torch_compile_max_autotune_tf32", "cuda_graph_eager", "naive_start",
]
"""What a solution is compared with (see baselines.py)."""


class BaselineTime(Frozen):
    """One baseline of a task, timed by the function that times the solution; or why it has no time."""

    name: BaselineName
    flags: str
    """What was allowed: `TF32 in convolutions` (PyTorch's default), `TF32`, `no TF32`, or `none` for a solution."""
    precision_class: PrecisionClass | None = None
    """Measured like the solution's."""
    time: TimeEstimate | None = None
    graph_time: TimeEstimate | None = None
    """Replayed as a CUDA graph, where a call is short enough for launches to matter."""
    solution_time: TimeEstimate | None = None
    """The solution's own samples between this baseline's: taken in turns, so that both saw the same card."""
    reason: str = ""
    """Why `time` is None."""


class Environment(Frozen):
    """Where the evaluation ran."""

    device: str
    simulated: bool
    arch: str
    versions: dict[str, str] = Field(default_factory=dict)
    sandbox: str = "rlimits"


class Evaluation(Frozen):
    """The reviewer's result for one solution. Fields a status forbids stay empty (checked)."""

    status: Status
    message: str
    """One or two sentences for the person who meets it: what, where, what to do."""
    environment: Environment
    findings: tuple[Finding, ...] = ()
    mismatch: Mismatch | None = None
    compile_log: str = ""
    resources: tuple[KernelResources, ...] = ()
    launches: tuple[LaunchRecord, ...] = ()
    profiles: tuple[KernelProfile, ...] = ()
    """Hardware counters of the solution's own kernels, one entry for each kernel and launch shape."""
    timeline: Timeline | None = None
    unavailable: dict[Tool, str] = Field(default_factory=dict)
    """Tools that the request asked for and that gave nothing -> why."""
    time: TimeEstimate | None = None
    time_unavailable: str = ""
    """Why `time` is empty although the solution passed."""
    graph_time: TimeEstimate | None = None
    """The solution replayed as a CUDA graph, where a call is short enough for launches to matter."""
    graph_unavailable: str = ""
    """Why a short solution has no `graph_time`."""
    baselines: tuple[BaselineTime, ...] = ()
    precision_class: PrecisionClass | None = None
    """None where nothing was verified, or no output is a floating-point number."""
    precision_ratio: float | None = None
    """The largest error against the double-precision reference, in units of the reference's own in the task's dtypes."""
    gpu_states: tuple[GpuState, ...] = ()
    """The card before and after the timing (mode cuda, where NVML says)."""
    task_facts: dict[str, float] = Field(default_factory=dict)
    """`task_bytes`, `task_output_elements`, ... as counted from the full-size inputs and outputs, and `task_flops` where torch
    counts them."""
    task_operator: str = ""
    """The operator that does most of the reference's arithmetic, e.g. `conv2d` (lint/cost.py); "" where none does."""
    checks: dict[str, int] = Field(default_factory=dict)
    """What was verified: cases run, sizes, distributions, elements compared."""
    verified_sizes: tuple[dict[str, int], ...] = ()
    """What it was judged at, as far as it came there: of proposals those that the reference accepts."""
    stage_seconds: dict[str, float] = Field(default_factory=dict)
    """Where the evaluation's time went, part by part; `other`: starting processes, and what lies between the parts."""

    @model_validator(mode="after")
    def _status_decides_fields(self) -> Evaluation:
        if self.status is not Status.PASSED and (self.time is not None or self.launches or self.profiles):
            raise ValueError(f"{self.status.value} cannot carry a time or launches: only a PASSED solution is profiled")
        if self.mismatch is not None and self.status not in INCORRECT:
            raise ValueError(f"{self.status.value} cannot carry a mismatch")
        if self.status in INCORRECT and self.mismatch is None:
            raise ValueError(f"{self.status.value} needs the mismatch that shows it")
        if self.status is Status.PASSED and any(f.severity == "error" for f in self.findings):
            raise ValueError("PASSED cannot carry an error finding")
        return self

    def to_json(self) -> str:
        """One line of JSON."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Evaluation:
        """Inverse of `to_json`; raises pydantic.ValidationError."""
        return cls.model_validate_json(text)

