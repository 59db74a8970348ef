"""Small inputs that make other splitters lose, move or double content: here every word is shown once, in its order."""

from __future__ import annotations

import pytest
from tokenizers_at_hand import trained
from treeagent.infer import plan_sections

ROWS = [
    (
        "html",
        "<p>Pay <a>the fee</a> of <strong>40</strong> before <em>May</em>, then stop.</p>",
        "Pay the fee of 40 before May then stop",
    ),
    ("html", "<body>lead text<h1>Plan</h1><p>x1</p><h2>Sub</h2><p>y1</p></body>", "lead text Plan x1 Sub y1"),
    ("html", "<div>a1<div>b1</div>c1</div><table><tr><td>k1<td>v1</table>", "a1 b1 c1 k1 v1"),
    ("html", "<p>alpha <b>beta</b> gamma</p>", "alpha beta gamma"),
    ("html", "<table><tr><td>cell</table><div>bare</div><pre>code</pre>", "cell bare code"),
    ("html", "<div>pay $<div style=x><span>5.22</span></div> per share</div>", "pay 5 22 per share"),
    ("html", "<table><thead><tr><th>Heading</th></tr></thead></table>", "Heading"),
    ("html", "<div>" * 300 + "PAYLOAD" + "</div>" * 300 + "<p>after</p>", "PAYLOAD after"),
    ("yaml", "note: |\n  first\n  ---\n  second\nlast: third\n", "first second third"),
    ("yaml", 'note: "p1\n\n  --- q1"\nlast: r1\n', "p1 q1 r1"),
    ("yaml", "spec: |\n  one two three four five six seven\n", "one two three four five six seven"),
    ("javascript", 'x = "' + "A" * 800 + '"', "A" * 800),
    ("javascript", 'const R={b:{label:"' + "L" * 160 + '"}}', "L" * 160),
    ("javascript", "const a = {k1: 1};\n\n\nconst b = {k2: 2};\n", "k1 1 k2 2"),
]  # fmt: skip


@pytest.mark.parametrize("budget", [1, 7, 500])
@pytest.mark.parametrize(("format", "text", "words"), ROWS)
def test_no_content_is_lost_moved_or_doubled(format: str, text: str, words: str, budget: int) -> None:
    plan = plan_sections(text, format=format, tokenizer=trained("gpt2"), exact_budget=budget)
    shown = "".join(text[s.start : s.end] for s in plan.sections)
    at = 0
    for word in words.split():
        at = shown.index(word, at) + len(word)
    assert all(text.count(word) == shown.count(word) for word in words.split() if len(word) > 3)
