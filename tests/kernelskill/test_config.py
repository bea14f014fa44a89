"""Settings of language models: command line over environment over kernelskill.toml, and no key among them."""

import pytest

from kernelskill.config import ENVIRONMENT, model_settings, reconnected
from kernelskill.errors import KernelSkillError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kernelskill.toml").write_text('[model]\nname = "file/model"\nrepairer = "file/mender"\nmax_tokens = 10\n')
    return tmp_path


def test_the_nearer_setting_wins(folder, monkeypatch):
    assert model_settings({}, folder).name == "file/model"
    monkeypatch.setenv("KERNELSKILL_MODEL", "environment/model")
    monkeypatch.setenv("KERNELSKILL_MAX_TOKENS", "20")
    found = model_settings({}, folder)
    assert (found.name, found.max_tokens, found.repairer) == ("environment/model", 20, "file/mender")
    assert model_settings({"name": "given/model", "max_tokens": None}, folder).name == "given/model"


def test_an_agent_without_a_model_of_its_own_uses_the_common_one(folder):
    found = model_settings({}, folder)
    assert (found.model_of("repairer"), found.model_of("optimizer")) == ("file/mender", "file/model")


@pytest.mark.parametrize("text, message", [
    ("[model]\nname = 'x'\nnam = 1\n", "nam: Extra inputs are not permitted"), ("[model]\nname = \n", "not TOML"),
    ("[modl]\nname = 'x'\n", r"the file has one table, \[model\]"), ("model = 3\n", r"the file has one table, \[model\]"),
    ("[model]\nname = 'x'\ntimeout_s = 0\n", "timeout_s: Input should be greater than 0"),
    ("[model]\nname = 'x'\napi_key = 'sk-1'\n", "api_key: Extra inputs are not permitted"),
    ("[model]\nname = 'x'\napi_base = 'https://me:secret@host/v1'\n", "a user or password does not belong into the address"),
])
def test_a_wrong_file_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / "kernelskill.toml"
    path.write_text(text)
    with pytest.raises(KernelSkillError, match=message) as refused:
        model_settings({}, tmp_path)
    assert str(refused.value).startswith(str(path)) and "secret" not in str(refused.value)


def test_a_wrong_variable_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELSKILL_MODEL", "x")
    monkeypatch.setenv("KERNELSKILL_MAX_COST", "much")
    with pytest.raises(KernelSkillError, match="the variable KERNELSKILL_MAX_COST"):
        model_settings({}, tmp_path)


def test_without_a_model_it_is_said_how_to_name_one(tmp_path):
    with pytest.raises(KernelSkillError, match="no language model is named") as refused:
        model_settings({}, tmp_path)
    assert all(word in refused.value.hint for word in ("--model", "KERNELSKILL_MODEL", "kernelskill.toml", "OPENAI_API_KEY"))


def test_a_resumed_run_keeps_its_model_and_budget_but_finds_a_server_that_moved(folder, monkeypatch):
    started = model_settings({"name": "first", "max_tokens": 5}, folder)
    monkeypatch.setenv("KERNELSKILL_API_BASE", "http://localhost:2/v1")
    monkeypatch.setenv("KERNELSKILL_MODEL", "second")
    again = reconnected(started, folder)
    assert (again.name, again.max_tokens, again.api_base) == ("first", 5, "http://localhost:2/v1")
