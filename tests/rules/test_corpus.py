"""The shipped rules over the committed fact sets: they decide what the card allows, and what they choose is faster."""

import re

import pytest

from benchmarks.policy_corpus import report
from benchmarks.policy_corpus.facts import ANY_METHOD, FactSet, from_facts, read
from benchmarks.policy_corpus.kernels import profiles
from kernelskill.methods import load_methods
from kernelskill.paths import methods_folder, rules_folder
from kernelskill.policy import Policy, load_rules
from kernelskill.policy.ruletest import load_cases, run_case

FOLDER = report.FOLDER
FIRST = 48


@pytest.fixture(scope="module")
def decided():
    return report.decided()


@pytest.fixture(scope="module")
def bare():
    return tuple(report.without_nsight())


@pytest.fixture(scope="module")
def steps(decided):
    first = list(report.measured())[:FIRST]
    return [step for step in report.steps(decided) if step.kernel in first]


def test_the_corpus_is_large_and_of_several_origins(decided):
    names = [one.name for one in decided]
    assert len(names) >= 200
    assert len(names) == len(set(names))
    assert {one.origin for one in decided} == {"h200", "modelled", "run"}


def test_almost_every_set_yields_a_method_or_a_reasoned_stop(decided):
    silent = [one.name for one in decided if not one.is_reasoned]
    assert len(silent) <= 0.03 * len(decided), silent


def test_no_choice_breaks_a_precondition_of_its_card(decided):
    assert {one.name: one.unmet for one in decided if one.unmet} == {}


def test_no_rule_is_dead_over_corpus_and_rule_tests(decided):
    cards = load_methods(methods_folder())
    book = load_rules([rules_folder()], cards)
    policy = Policy(book)
    fired = {rule.rule for one in decided for rule in one.decision.fired}
    results = [run_case(case, policy) for case in load_cases([rules_folder()])]
    fired |= {rule.rule for result in results if result.decision for rule in result.decision.fired}
    assert {rule.rule.id for rule in book.rules} - {name.split("[")[0] for name in fired} == set()


def test_the_choices_for_measured_kernels_lead_to_faster_ones(steps):
    assert len(steps) >= 30
    assert report.share(steps) >= 85, [step.kernel for step in steps if not step.is_good]


def test_a_choice_without_a_measured_variant_does_not_count():
    step = report.Step("k", "", "launch_tuning", "", None, "vectorized_access", 1.3)
    assert not step.is_good
    assert not report.Step("k", "", "a", "v", 1.03, "b", 1.3).is_good
    assert report.Step("k", "", "a", "v", 1.04, "b", 1.3).is_good


def test_our_diagnosis_agrees_with_nvidias_without_its_help(bare):
    rows = report.agreement(bare)
    assert {kernel for kernel, *_ in rows} == set(profiles())
    assert all(theirs for _, theirs, _, _ in rows)
    assert {kernel for kernel, _, _, same in rows if not same} == {"mm_register8x8"}


@pytest.mark.parametrize("page", ["decisions.md", "steps.md", "nsight.md"])
def test_the_committed_tables_are_fresh(page, decided, bare):
    text = report.nsight_page(bare) if page == "nsight.md" else getattr(report, page.replace(".md", "_page"))(decided)
    assert (FOLDER / page).read_text(encoding="utf-8") == text, "make them again: python -m benchmarks.policy_corpus report"


def test_rules_of_ones_own_are_compared_with_the_shipped_ones(tmp_path):
    veto = "rules:\n  - {id: never, when: {fact: time_us, op: exists}, then: [{veto: vectorized_access}]}\n"
    (tmp_path / "mine.yaml").write_text(veto, encoding="utf-8")
    *lines, count, preconditions, steps = report.compared([tmp_path])
    changed = [line for line in lines if not line.startswith("  ")]
    assert changed and all(": vectorized_access -> " in line for line in changed)
    assert count.startswith(f"{len(changed)} of ")
    assert preconditions.endswith(": none")
    assert re.search(r"step: \d+ % -> \d+ %$", steps)


def test_a_set_expands_to_the_facts_it_was_made_from():
    recorded = next(one for one in read() if one.origin == "run" and one.methods)
    facts = recorded.expand(load_methods(methods_folder()))
    again = from_facts(recorded.name, recorded.origin, facts)
    assert (again.facts, again.applicable, again.methods) == (recorded.facts, recorded.applicable, recorded.methods)


def test_a_writer_that_can_write_anything_lets_only_the_rules_decide():
    everything = FactSet("s", "h200", {}, (ANY_METHOD,)).expand(["a", "b"])
    nothing = FactSet("s", "run", {}, ()).expand(["a", "b"])
    assert [everything[f"applicable.{m}"].value for m in "ab"] == [True, True]
    assert [nothing[f"applicable.{m}"].value for m in "ab"] == [False, False]
