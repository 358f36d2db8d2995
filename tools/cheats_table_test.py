"""Tables of cheats: those of a device, and those that others published."""

from tools.results_table import table

HEAD = {"command": "c", "date": "d", "machine": "a chip", "driver": "1", "versions": {"torch": "2"}}


def row(name, kind, right, **found):
    made = {"name": name, "language": "cuda", "group": 5, "is": kind, "as_expected": right}
    expected = "check: output `y`|equal" if kind == "cheat" else "accepted"
    return made | {"expected": expected, "verdict": "accepted", **found}


def test_a_device_has_a_line_for_each_kind_and_each_exception():
    refused = {"verdict": "refused", "stage": "check", "reason": "off by one"}
    rows = [
        row("a", "cheat", True, **refused),
        row("b", "cheat", False),
        row("h", "honest", False, **refused),
    ]
    said = {
        kind: {"cases": n, "as_expected": m} for kind, n, m in (("cheat", 2, 1), ("honest", 1, 0))
    }
    more = {"cheats": True, "secret": "s", "left_out": ["x"], "not_reached": [], "wall_s": 2.0}
    clocks = {"clocks_mhz": {"sm": 1980}}
    text = table(HEAD | more | clocks | {"summary": said, "rows": rows})
    assert "a chip, driver 1, torch 2, SM clock 1980 MHz, secret `s`, 2.0 s" in text
    assert "1 of 2 cheats refused for their reason, 0 of 1 honest oddities accepted" in text
    assert "| cuda | cheats: shapes and seeds that are known | 2 | 1 |" in text
    assert "| cuda | honest oddities | 1 | 0 |" in text
    assert "| honest | h | cuda | accepted | refused at check: off by one |" in text
    assert "| cheat | b | cuda | check: output `y`\\|equal | accepted |" in text
    assert "have: `x`." in text and "Not reached" not in text


def test_published_cheats_have_a_line_each():
    one = {"name": "ones", "collection": "L1", "why": "no work", "kind": "wrong", "reason": "a\n|b"}
    rows = [one | {"as_expected": True}, one | {"name": "zeros", "as_expected": False}]
    text = table({"judged": "published cheats", "device": "a chip", **HEAD, "rows": rows})
    assert "`c`, d, a chip, torch 2. **1 of 2 refused as expected.**" in text
    assert "| ones | L1 | no work | wrong | a \\|b | yes |" in text and "| **no** |" in text
