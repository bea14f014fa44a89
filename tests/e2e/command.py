"""The `kernelskill` command, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Command:
    """Runs the command in the checkout and holds it to an exit code."""

    def __init__(self, *arguments, expect=0):
        done = subprocess.run(
            [sys.executable, "-m", "kernelskill", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.out, self.err = done.stdout, done.stderr

    @property
    def json(self):
        """stdout, which must hold JSON only."""
        return json.loads(self.out)
