"""`kernelskill rules`: check, test, show, list, graph, new, diff."""

import re
import shutil
from xml.etree import ElementTree

import pytest

from kernelskill.paths import rules_folder

SVG = "{http://www.w3.org/2000/svg}"


def test_the_built_in_rules_are_listed_checked_and_tested(kernelskill):
    rows = kernelskill("rules", "list", "--json").json
    assert len(rows) > 50 and {"id", "title", "status", "then", "path", "line"} <= rows[0].keys()
    assert [row["then"] for row in rows if row["for_each"] == "method" and row["id"] == "failed_here"] == [["veto {method}"]]
    assert kernelskill("rules", "check", "--json").json == []
    cases = kernelskill("rules", "test", "--filter", "failed_here", "--json").json["cases"]
    assert cases and all(case["passed"] for case in cases)


def test_check_gives_place_and_hint_for_people_and_programs(kernelskill, tmp_path):
    text = "rules:\n  - id: r\n    when: {fact: hedroom, op: '>', value: 2}\n    then: [{propose: launch_tuning}]\n"
    (tmp_path / "bad.yaml").write_text(text)
    said = kernelskill("rules", "check", "--rules", tmp_path, expect=1).out
    assert (
        f"{tmp_path}/bad.yaml:3:18: error: no fact is called `hedroom` [unknown-fact]\n  hint: did you mean 'headroom'?" in said
    )
    found = kernelskill("rules", "check", "--rules", tmp_path, "--json", expect=1).json
    assert {
        "check": "unknown-fact",
        "severity": "error",
        "path": f"{tmp_path}/bad.yaml",
        "line": 3,
        "column": 18,
        "message": "no fact is called `hedroom`",
        "hint": "did you mean 'headroom'?",
    } in found


def test_coverage_below_the_threshold_fails(kernelskill, extra_rules, tmp_path):
    shutil.copy(extra_rules / "ours.yaml", tmp_path)
    case = "cases:\n  - {name: wide, facts: {vector_load_bytes: 4, dram_throughput_pct: 70}, fires: [our_widen]}\n"
    (tmp_path / "ours.test.yaml").write_text(case)
    assert kernelskill("rules", "test", "--rules", tmp_path, "--filter", "our_widen").out == "1 cases, 0 failed\n"
    found = kernelskill(
        "rules", "test", "--rules", tmp_path, "--filter", "our_widen", "--coverage", 99, "--json", expect=1
    ).json
    assert found["coverage_pct"] < 99
    missed = {(entry["rule"], entry["condition"], entry["never"]) for entry in found["uncovered"]}
    assert ("our_widen", "vector_load_bytes < 16", "not true") in missed
    assert {rule for rule, *_ in missed} == {"our_widen"}, "the rules that the filtered cases name"
    assert found["counted"] == "1 rule and 1 case of the folders given"


def test_coverage_of_ones_own_rules_by_ones_own_cases(kernelskill, extra_rules, tmp_path):
    """Built-in cases see `block_threads > 512` both ways; that does not count for a rule that has no case."""
    shutil.copy(extra_rules / "ours.yaml", tmp_path)
    case = "cases:\n  - {name: wide, facts: {vector_load_bytes: 4, dram_throughput_pct: 70}, fires: [our_widen]}\n"
    (tmp_path / "ours.test.yaml").write_text(case)
    said = kernelskill("rules", "test", "--rules", tmp_path, "--coverage", 1, expect=1).out
    assert "block_threads > 512 was never true (our_tune)" in said
    assert said.endswith("(2 rules and 1 case of the folders given)\n")
    found = kernelskill("rules", "test", "--coverage", 100, "--json").json
    assert found["coverage_pct"] == 100


def test_show_is_a_page(kernelskill, extra_rules):
    page = kernelskill("rules", "show", "our_widen", "--rules", extra_rules).out
    assert page.startswith(f"our_widen: Narrow loads\n{extra_rules}/ours.yaml:2:9, experimental, priority 998\n")
    assert "when:\n  all of\n    vector_load_bytes < 16\n    dram_throughput_pct >= 60\n" in page
    assert "propose vectorized_access, expected 1.1x to 1.3x" in page
    assert "  vector_load_bytes [B]: from sass or source; widest global load a lane" in page
    assert re.search(r"  vectorized_access \(.*\): .*veto vectorized_access by .*not_applicable", page)
    data = kernelskill("rules", "show", "our_tune", "--rules", extra_rules, "--json").json
    assert data["then"] == ["propose launch_tuning, expected 1.05x, threads = 256"] and data["cases"] == []


def test_show_names_who_derives_and_who_reads(kernelskill):
    data = kernelskill("rules", "show", "dram_bound", "--json").json
    assert any(line.startswith("bottleneck.dram is read by ") and "no rule" not in line for line in data["causes"])
    assert {case["expects"] for case in data["cases"]} == {"fires", "not_fires"}
    reader = data["causes"][0].split("is read by ")[1].split(", ")[0]
    needs = kernelskill("rules", "show", reader, "--json").json["needs"]
    assert any(entry["fact"] == "bottleneck.dram" and "dram_bound" in entry["derived_by"] for entry in needs)


def test_a_rule_for_each_method_is_shown_as_written_and_a_copy_as_it_is(kernelskill):
    data = kernelskill("rules", "show", "failed_here", "--json").json
    assert data["for_each"] == "method" and data["copies"] > 10
    assert data["when"] == ["failed_here.{method} >= 1"] and data["then"] == ["veto {method}"]
    copy = kernelskill("rules", "show", "failed_here[launch_tuning]", "--json").json
    assert copy["when"] == ["failed_here.launch_tuning >= 1"] and copy["then"] == ["veto launch_tuning"]
    assert "did you mean 'failed_here'?" in kernelskill("rules", "show", "failed_hre", expect=2).err


def test_graph_as_dot(kernelskill, extra_rules):
    dot = kernelskill("rules", "graph", "--rules", extra_rules).out
    assert dot.startswith("digraph rules {") and dot.endswith("}\n") and dot.count("{method}") > 0
    assert '"fact:vector_load_bytes" -> "rule:our_widen"' in dot and '"rule:our_widen" -> "method:vectorized_access"' in dot
    assert '"rule:dram_bound" -> "fact:bottleneck.dram"' in dot and 'label="every method"' in dot
    assert dot == kernelskill("rules", "graph", "--rules", extra_rules).out
    part = kernelskill("rules", "graph", "--rules", extra_rules, "--about", "our_tune").out
    nodes = set(re.findall(r'^  "(\w+:[^"]+)" \[', part, re.MULTILINE))
    assert nodes == {"fact:block_threads", "rule:our_tune", "method:launch_tuning"}
    refused = kernelskill("rules", "graph", "--rules", extra_rules, "--about", "our_tun", expect=2)
    assert "did you mean 'our_tune'" in refused.err


def test_graph_as_picture(kernelskill, tmp_path):
    kernelskill("rules", "graph", "--svg", "--out", tmp_path / "graph.svg")
    root = ElementTree.parse(tmp_path / "graph.svg").getroot()
    boxes = [
        tuple(float(rect.get(key)) for key in ("x", "y", "width", "height")) for rect in root.iterfind(f"{SVG}g/{SVG}rect")
    ]
    assert len(boxes) > 100
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    overlaps = [
        (one, other)
        for index, one in enumerate(boxes)
        for other in boxes[:index]
        if one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    ]
    assert not overlaps
    dot = kernelskill("rules", "graph").out
    assert len(root.findall(f"{SVG}path")) == dot.count(" -> ")


def test_a_new_rule_passes_once_the_blanks_are_filled(kernelskill, tmp_path):
    folder = tmp_path / "mine"
    said = kernelskill("rules", "new", "wide_rows", "--rules", folder, "--method", "vectorized_access").out
    assert f"{folder}/wide_rows.yaml\n{folder}/wide_rows.test.yaml\n" in said
    kernelskill("rules", "check", "--rules", folder, expect=1)
    fill(
        folder / "wide_rows.yaml",
        {
            "<a few words for lists>": "Rows are long",
            "fact: <fact>": "fact: task_reduction_length",
            "value: <number>": "value: 7777",
            "low: <number>, high: <number>": "low: 1.05, high: 1.2",
            "<one sentence; a fact of `when` in braces shows its value>": '"{task_reduction_length} elements a row"',
            "<guide section, paper, or the run that showed it>": "a measured run",
        },
    )
    fill(
        folder / "wide_rows.test.yaml",
        {
            "<what is the case when the rule must fire>": "long rows",
            "<the same, on the other side of the threshold>": "short rows",
        },
    )
    test = folder / "wide_rows.test.yaml"
    over, under = (f"task_reduction_length: {number}" for number in (8000, 100))
    test.write_text(test.read_text().replace("<fact>: <number>", over, 1).replace("<fact>: <number>", under, 1))
    assert "0 problems" in kernelskill("rules", "check", "--rules", folder).out
    assert "2 cases, 0 failed" in kernelskill("rules", "test", "--rules", folder, "--filter", "wide_rows").out


def fill(path, blanks):
    text = path.read_text()
    for blank, words in blanks.items():
        assert blank in text
        text = text.replace(blank, words, 1)
    path.write_text(text)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["Wide-Rows"], "'Wide-Rows' is no id for a rule"),
        (["r", "--method", "vectorised_access"], "did you mean 'vectorized_access'"),
    ],
)
def test_a_new_rule_needs_usable_names(kernelskill, tmp_path, arguments, message):
    assert message in kernelskill("rules", "new", *arguments, "--rules", tmp_path, expect=2).err
    assert not list(tmp_path.iterdir())


def test_a_new_rule_never_writes_over_a_file_and_says_what_it_replaces(kernelskill, tmp_path):
    assert "note: a built-in rule has this id" in kernelskill("rules", "new", "failed_here", "--rules", tmp_path).out
    before = (tmp_path / "failed_here.yaml").read_text()
    assert "this file exists already" in kernelskill("rules", "new", "failed_here", "--rules", tmp_path, expect=2).err
    assert (tmp_path / "failed_here.yaml").read_text() == before


def test_diff_names_rules_and_the_decisions_that_change(kernelskill, recorded_run, extra_rules, tmp_path):
    after = tmp_path / "after"
    after.mkdir()
    text = (extra_rules / "ours.yaml").read_text().replace("value: 60", "value: 75").replace("our_tune", "our_new_tune")
    (after / "ours.yaml").write_text(text)
    said = kernelskill("rules", "diff", extra_rules, after, "--runs", recorded_run).out
    assert f"added our_new_tune ({after}/ours.yaml:9:9)\n" in said and "removed our_tune" in said
    assert f"changed our_widen: when ({extra_rules}/ours.yaml:2:9 → {after}/ours.yaml:2:9)" in said
    assert "run round 1: vectorized_access → launch_tuning(threads=256)" in said and "1 of 3 decisions changes" in said
    same = kernelskill("rules", "diff", extra_rules, extra_rules, "--runs", recorded_run, "--json").json
    assert same["rules"] == [] and [entry["changed"] for entry in same["decisions"]] == [False] * 3


def test_diff_of_whole_rule_sets(kernelskill, recorded_run, extra_rules, tmp_path):
    whole = shutil.copytree(rules_folder(), tmp_path / "whole")
    (whole / "vetoes" / "history.yaml").unlink()
    said = kernelskill("rules", "diff", rules_folder(), whole, "--alone", "--runs", recorded_run).out
    assert said.count("removed failed_here") == 1
    assert (
        "the rules say the same"
        in kernelskill("rules", "diff", extra_rules, extra_rules, "--alone", "--runs", recorded_run).out
    )
