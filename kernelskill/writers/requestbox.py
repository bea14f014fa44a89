"""Requests as folders: what is to be written goes out as files, and the answer comes back as one.

`<box>/003/` holds `request.md` (the prompt), `request.json` (the same as data), `parent.py` (the solution to start from; for a
repair also `failed.py`) and, once it is answered, `solution.py`. A folder appears whole or not at all, and so does an answer
that `answer` puts there. Nothing in it depends on where it lies.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from evaluator.types import Frozen
from kernelskill.errors import AnswerError, Location, RunError
from kernelskill.writers.reply import Reply, read_reply
from kernelskill.writers.request import MAX_SOURCE, Request, render

REQUESTS = "requests"
"""The box in a run's folder."""
REQUEST, PROMPT, ANSWER = "request.json", "request.md", "solution.py"


class Posted(Frozen):
    """`request.json`: one request as it went out."""

    version: Literal[1] = 1
    id: str
    """Its number in the run, e.g. `003`."""
    key: str
    """What the answer is found by when the run is taken up again."""
    prompt_version: str
    """Digest of the templates that rendered `request.md`."""
    request: Request


@dataclass(frozen=True)
class Entry:
    """A request's folder."""

    folder: Path
    posted: Posted

    def answer(self) -> str | None:
        """The answer's text, None where there is no file. Raises AnswerError for what is no text, empty or too long."""
        path = self.folder / ANSWER
        return checked(path.read_bytes(), path) if path.is_file() else None

    @property
    def answered(self) -> bool:
        """There is an answer that can be taken."""
        try:
            return self.answer() is not None
        except AnswerError:
            return False


def checked(data: bytes, path: Path) -> str:
    """The bytes of a solution as text; of a reply in prose with a block of code, the code.

    Raises AnswerError naming `path`. Whether the code is right is the reviewer's to say.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AnswerError(f"this is no text: byte {error.start} is not UTF-8", location=Location(path),
                          hint="hand in one Python module as text") from None
    if not text.strip():
        raise AnswerError("the file is empty", location=Location(path), hint="hand in the whole Python module")
    if len(text) > MAX_SOURCE:
        raise AnswerError(f"the file has {len(text)} characters; a solution has at most {MAX_SOURCE}", location=Location(path),
                          hint="leave out what the module does not need")
    return text if _is_module(text) else _from_prose(text)


def _is_module(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _from_prose(text: str) -> str:
    """The module in a chat reply that was saved as it came; what holds none stays as it is."""
    found = read_reply(text)
    return found.code if isinstance(found, Reply) else text


def key_of(request: Request) -> str:
    """What makes a request the same one when a run is taken up again.

    Wording, evidence and diagnosis do not count: a newer version of the program may put them differently while an answer is
    awaited.
    """
    method = request.method.model_dump() if request.method else None
    parts = [request.role, request.round, request.seed, method, request.source, request.parent_source]
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=10).hexdigest()


class RequestBox:
    """The requests of one run, oldest first. One process at a time posts (it holds the run); anybody may answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> Iterator[Entry]:
        """Every request. Raises RunError naming a `request.json` that cannot be read."""
        for folder in sorted(self.folder.glob("[0-9]*")):
            yield Entry(folder, read_posted(folder))

    def find(self, request: Request) -> Entry | None:
        """The folder of the request, where it was posted before."""
        key = key_of(request)
        return next((entry for entry in self.entries() if entry.posted.key == key), None)

    def open_entry(self) -> Entry | None:
        """The newest request, if nobody has answered it."""
        entries = list(self.entries())
        return entries[-1] if entries and not entries[-1].answered else None

    def post(self, request: Request) -> Entry:
        """The request's folder, made where it is new. Raises WriterError for a solution too long to be sent."""
        known = self.find(request)
        if known is not None:
            return known
        prompt = render(request)
        posted = Posted(id=f"{sum(1 for _ in self.entries()) + 1:03}", key=key_of(request), prompt_version=prompt.digest,
                        request=request)
        files = {REQUEST: posted.model_dump_json(indent=1) + "\n", PROMPT: prompt.markdown, **_sources(request)}
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
        for name, text in files.items():
            (fresh / name).write_text(text, encoding="utf-8")
        fresh.chmod(0o755)
        return Entry(fresh.replace(self.folder / posted.id), posted)


def _sources(request: Request) -> dict[str, str]:
    if request.role == "repairer":
        return {"failed.py": request.source, "parent.py": request.parent_source}
    return {"parent.py": request.source} if request.source else {}


def read_posted(folder: Path) -> Posted:
    """A request's `request.json`. Raises RunError."""
    path = folder / REQUEST
    try:
        return Posted.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError("this folder is no request: it has no request.json", location=Location(folder)) from None
    except (ValidationError, UnicodeDecodeError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise RunError(f"the request cannot be read: {problem}", location=Location(path),
                       hint="it was changed by hand or written by another version of kernelskill") from None


def put_answer(folder: Path, text: str) -> None:
    """Put an answer into a request's folder at once. Raises AnswerError when one that can be taken is there already."""
    from filelock import FileLock

    with FileLock(folder / ".answer.lock"):
        if Entry(folder, read_posted(folder)).answered:
            raise AnswerError("the request has an answer already", location=Location(folder / ANSWER),
                              hint="the first answer counts; go on with the run to get the next request")
        handle, fresh = tempfile.mkstemp(prefix=".new-", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(fresh).chmod(0o644)
        Path(fresh).replace(folder / ANSWER)


def copy_out(entry: Entry, target: Path) -> None:
    """Copy a request's files, without an answer, to a new folder. Raises FileExistsError where there is one."""
    shutil.copytree(entry.folder, target, ignore=shutil.ignore_patterns(ANSWER, ".*"))
