"""An installation finds its rules and knowledge from any directory."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    source = folder / "source"
    for name in tracked.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(source)], check=True)
    return next(folder.glob("*.whl"))


def test_everything_that_is_data_is_in_the_wheel(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    data = [p for folder in ("rules", "knowledge") for p in (ROOT / folder).rglob("*") if p.suffix in (".yaml", ".md", ".json")]
    assert len(data) > 20
    assert not [p for p in data if f"kernelskill/{p.relative_to(ROOT)}" not in inside]
    for pattern in ("*.h", "*.cpp", "*.j2"):
        assert not [p for p in ROOT.glob(f"[ek]*/**/{pattern}") if str(p.relative_to(ROOT)) not in inside]


def test_an_unpacked_wheel_finds_its_own_data_and_not_the_checkout(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "from kernelskill.paths import rules_folder, methods_folder; print(rules_folder()); print(methods_folder())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(line.startswith(str(tmp_path / "site" / "kernelskill")) for line in done.stdout.splitlines())
