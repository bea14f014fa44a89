"""Which NVRTC options a solution may pass: those that change code generation, none that reads or writes files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluator.includes import STEERS_HEADERS, Refused

FLAGS = frozenset(
    ["use_fast_math", "lineinfo", "generate-line-info", "w", "disable-warnings", "restrict", "default-device",
     "device-as-default-execution-space", "extra-device-vectorization", "display-error-number", "no-display-error-number",
     "relocatable-device-code=false", "rdc=false", "device-int128", "Ofast-compile", "dopt", "split-compile", "minimal"]
)
PTXAS = r"-v|-O[0-3]|-dlcm=c[agsv]|-dscm=\w+|--warn-on-spills|--maxrregcount=\d+|-allow-expensive-optimizations=\w+"
VALUED = {
    "std": r"c\+\+(11|14|17|20)",
    "maxrregcount": r"\d+",
    "ftz": r"true|false",
    "prec-sqrt": r"true|false",
    "prec-div": r"true|false",
    "fmad": r"true|false",
    "builtin-move-forward": r"true|false",
    "builtin-initializer-list": r"true|false",
    "dopt": r"on|off",
    "Ofast-compile": r"0|min|mid|max",
    "diag-suppress": r"[\w,-]+",
    "diag-warn": r"[\w,-]+",
    "diag-error": r"[\w,-]+",
    "ptxas-options": PTXAS,
    "Xptxas": PTXAS,
}
DEFINE = re.compile(r"(?:-D|--define-macro=)[A-Za-z_]\w*(?:\([\w, ]*\))?(?:=[^\n\r#\\]*)?|(?:-U|--undefine-macro=)[A-Za-z_]\w*")
INCLUDE = re.compile(r"(?:-I|--include-path=)(?P<folder>.+)")
TAKES_NEXT = frozenset(["-D", "-U", "-I", "-std", "--std", "-Xptxas", "--ptxas-options", "-maxrregcount", "--maxrregcount",
                        "--define-macro", "--include-path", "-include", "--pre-include", "-arch", "--gpu-architecture"])


def checked_options(options: Sequence[str], include_dirs: Sequence[Path]) -> list[str]:
    """The options to hand to NVRTC, one token each. Raises Refused naming the option.

    `-I` of the CUDA include folders is dropped (they are searched anyway); any other folder is refused.
    """
    return [option for option in _one_token_each(options) if _permitted(option, include_dirs)]


def _one_token_each(options: Sequence[str]) -> Iterator[str]:
    """Joins `-Xptxas -O3` and `-D NAME` to one token, as the compiler does."""
    pending = ""
    for option in options:
        if not isinstance(option, str):
            raise Refused(f"option {option!r} is not a string")
        if pending:
            yield f"{pending}{'' if len(pending) == 2 else '='}{option}"
            pending = ""
        elif option in TAKES_NEXT:
            pending = option
        elif option:
            yield option.strip()
    if pending:
        raise Refused(f"option {pending} needs a value")


def _permitted(option: str, include_dirs: Sequence[Path]) -> bool:
    """True: pass it on. False: harmless and superfluous."""
    include = INCLUDE.fullmatch(option)
    if include:
        if Path(include["folder"]).resolve() in {folder.resolve() for folder in include_dirs}:
            return False
        raise Refused(f"option {option}: CUDA's own headers are found without -I, and no other folder may be searched")
    if DEFINE.fullmatch(option):
        if STEERS_HEADERS.search(option):
            raise Refused(f"option {option}: a macro that chooses which file a CUDA header includes may not be set")
        return True
    name, _, value = option.lstrip("-").partition("=")
    if name in ("arch", "gpu-architecture", "gpu-code", "code"):
        raise Refused(f"option {option}: the evaluator sets the architecture; leave it out")
    known = option.lstrip("-") in FLAGS or (name in VALUED and re.fullmatch(VALUED[name], value) is not None)
    if option.startswith("-") and known:
        return True
    raise Refused(f"option {option} is not permitted; permitted are -D, -U, {', '.join(sorted(FLAGS | set(VALUED)))}")
