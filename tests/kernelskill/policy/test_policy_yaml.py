"""YAML with places, read once and kept."""

import pytest

from kernelskill import documentcache
from kernelskill.yamlsource import parse, read_document

TEXT = "rules:\n  - id: a  # c\n    when: {fact: x, op: '>=', value: 1.5}\n    list: [1, true, 'é', ~, 1e-5]\n"


@pytest.fixture(name="cache")
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_values_and_places(tmp_path):
    document, problems = parse(TEXT, tmp_path / "a.yaml")
    assert problems == [] and document.data == {
        "rules": [{"id": "a", "when": {"fact": "x", "op": ">=", "value": 1.5}, "list": [1, True, "é", None, 1e-05]}]
    }
    assert str(document.at(("rules", 0, "when", "value"))).endswith("a.yaml:3:38")
    assert str(document.at(("rules", 0, "when", "value"), key=True)).endswith("a.yaml:3:31")
    assert str(document.at(("rules", 0, "list", 4))).endswith("a.yaml:4:29")
    assert str(document.at(("rules", 0, "nothing", "here"))).endswith("a.yaml:2:5"), "the nearest enclosing part"


def test_a_kept_document_is_the_same(tmp_path, cache):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    first = read_document(path)
    assert documentcache.entry(TEXT).exists() and cache in documentcache.entry(TEXT).parents
    assert read_document(path) == first == parse(TEXT, path)


def test_changed_text_is_read_again(tmp_path, cache):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    read_document(path)
    path.write_text(TEXT.replace("1.5", "2.5"))
    assert read_document(path)[0].data["rules"][0]["when"]["value"] == 2.5


def test_a_damaged_cache_is_no_cache(tmp_path, cache):
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    first = read_document(path)
    documentcache.entry(TEXT).write_text("{")
    assert read_document(path) == first


def test_a_cache_that_cannot_be_written_is_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    assert read_document(path)[0].data == parse(TEXT, path)[0].data


def test_problems_are_not_kept(tmp_path, cache):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\na: 2\n")
    assert len(read_document(path)[1]) == len(read_document(path)[1]) == 1


def test_what_json_cannot_hold_is_read_every_time(tmp_path, cache):
    path = tmp_path / "a.yaml"
    path.write_text("since: 2024-01-31\n")
    assert read_document(path) == read_document(path) and not documentcache.entry("since: 2024-01-31\n").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "cannot read the file"), (b"? [a]\n: 1\n", "a key must be a word"), (b"a: *b\n", "not valid YAML")],
)
def test_unreadable_files_have_a_place(tmp_path, content, message):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    (problem,) = read_document(path)[1]
    assert message in problem.message and problem.location.path == path
