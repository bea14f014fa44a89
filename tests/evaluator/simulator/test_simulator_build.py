"""The library is found in the cache, rebuilt when its inputs change, and its absence explained."""

from __future__ import annotations

import pytest

from evaluator.simulator import build
from evaluator.simulator.ptx_code import op_table


def test_cache_folder_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert build.cache_folder() == tmp_path / "cache" / "kernelskill"
    assert build.cache_folder().is_dir()


def test_missing_compiler_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(build.BuildError, match="apt install g"):
        build.find_compiler()


def test_library_is_built_once_and_again_after_a_change(monkeypatch, tmp_path):
    source = tmp_path / "csrc"
    source.mkdir()
    (source / "one.cpp").write_text("extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }\n")
    monkeypatch.setattr(build, "SOURCES", source)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = build.library_path()
    stamp = first.stat().st_mtime_ns
    assert build.library_path() == first and first.stat().st_mtime_ns == stamp
    (source / "one.cpp").write_text("int answer( {\n")
    with pytest.raises(build.BuildError, match=r"building the simulator failed.*one\.cpp"):
        build.library_path()
    assert list(first.parent.glob("*.so")) == [first]


def test_every_operation_of_the_core_has_one_name():
    table = op_table()
    assert len(table.lane) + len(table.other) == len(table.names)
    assert table.lane["fma.rn.ftz.f32"].sources == ("f32", "f32", "f32")
    assert table.lane["setp.lt.s32"].destination == "pred"
