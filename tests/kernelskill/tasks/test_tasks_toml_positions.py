from __future__ import annotations

from kernelskill.tasks.toml_positions import key_lines

TEXT = '''\
name = "a # no = comment"   # c = 1
list = [
  1,  # d = 2
  2,
]
inline = { x = 1 }
dotted.key = 1

[table]
"quoted key" = 1
text = """
fake = 1
[fake]
"""
after = 2

[[many]]
a = 1
[[many]]
a = 2
[many.inner]
b = 3
'''


def test_every_key_has_its_line():
    lines = key_lines(TEXT)
    assert lines == {
        ("name",): 1,
        ("list",): 2,
        ("inline",): 6,
        ("dotted",): 7,
        ("dotted", "key"): 7,
        ("table",): 9,
        ("table", "quoted key"): 10,
        ("table", "text"): 11,
        ("table", "after"): 15,
        ("many",): 17,
        ("many", 0): 17,
        ("many", 0, "a"): 18,
        ("many", 1): 19,
        ("many", 1, "a"): 20,
        ("many", 1, "inner"): 21,
        ("many", 1, "inner", "b"): 22,
    }
