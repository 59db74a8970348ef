"""A mutation fuzzer over the parsers of all formats: seeded, for a given number of seconds.

python tests/fuzz/fuzz_parsers.py [--seconds 60] [--seed 0]

Small documents are cut, doubled, crossed and sprinkled with the characters that mean something to a format. Each
result is either refused with an error of ours, or read; then its spans lie inside each other in order, every node's
path is found, and the sections at a small budget keep their properties. Anything else stops the fuzzer with the input
written out.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from itertools import pairwise

from tokenizers import Tokenizer as HFTokenizer
from tokenizers import models, pre_tokenizers
from treeagent.data.formats import FORMATS, parse
from treeagent.data.tokens import Tokenizer, load_tokenizer
from treeagent.data.tree import Document
from treeagent.errors import InputError
from treeagent.infer.plan import plan_document

SEEDS: dict[str, list[str]] = {
    "json": [
        '{"a": [1, 2.5e3, {"b c": "x\\n\\u00e9 \\ud83d\\ude00"}], "a": {}, "": [[], [ ]], "t": true}',
        '[{"id": 1, "name": "one two three. Four five."}, {"id": 2, "tags": ["x", "y", "z"]}]\r\n',
    ],
    "html": [
        (
            '<!DOCTYPE html><html><head><title>T</title></head><body class="a b"><table><tr><td>1<td>2</table>'
            "<p>one &amp; two<br>three<ul><li>a<li>b</ul><script>if (a < b) {}</script></body></html>"
        ),
        "<div id=x><p>alpha <b>beta <i>gamma</b> delta</i><!-- note --><svg><path d='M0'/></svg>tail</div>",
    ],
    "yaml": [
        (
            "%YAML 1.2\n---\na: &x [1, {b: 'c''d'}]\nb: *x\n# note\nc: |\n  text\n  more\n"
            '? [k]\n: v\n---\n- - 1\n  - "e\\n"\n'
        ),
        "paths:\n  /users:\n    get:\n      summary: List users. All of them.\n      tags: [a, b]\n  <<: {x: 1}\n",
    ],
    "javascript": [
        (
            "// note\nconst config = { rules: [0x1F, 'a\\n', `t ${x}`], get y() { return 1 }, ...z, [k]: 1, };\n"
            "module.exports = { a: { b: [1,,2] } };\nfunction f() { return {a: 1} }\n"
            "export default [1, 'two', /re/g];\n"
        ),
        "{ a: 1, 'b c': [true, null, -1.5e3, 10n] }",
    ],
}
CHARACTERS = list("{}[]<>()\"'`,:;=-!?#&*|%@\\/ \n\r\t.$_a1é東😀\x00\ufeff\u2028")


def mutate(text: str, other: str, rng: random.Random) -> str:
    """A few random edits of `text`, with pieces of `other` crossed in."""
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([0, 1, 1, 2, 5, 20]))
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + "".join(rng.choices(CHARACTERS, k=rng.randrange(1, 4))) + text[end:]
        elif kind == 2:
            text = text[:at] + text[at:end] * rng.randrange(2, 30) + text[end:]
        elif kind == 3:
            cut = rng.randrange(len(other) + 1)
            text = text[:at] + other[cut : cut + 30] + text[at:]
        else:
            text = text[:at] + rng.choice(CHARACTERS) * rng.randrange(1, 200) + text[end:]
    return text[:5000]


def check(document: Document, tokenizer: Tokenizer) -> None:
    """What holds for every document that was read."""
    stack = [document.root]
    while stack:
        node = stack.pop()
        children = document.children(node)
        edges = [node.start, *(edge for c in children for edge in (c.start, c.end)), node.end]
        assert edges == sorted(edges), "children lie in order inside their parent"
        assert len({document.step(child) for child in children}) == len(children), "siblings have different steps"
        assert 0 <= node.start <= node.content <= node.end <= len(document.text)
        stack.extend(children)
    for budget in (3, 17):
        plan = plan_document(document, tokenizer, budget=budget)
        edges = [0, *(edge for s in plan.sections for edge in (s.start, s.end)), len(document.text)]
        assert all(a <= b for a, b in pairwise(edges)), "sections tile the document"
        for section in plan.sections:
            assert section.tokens == tokenizer.count(document.text[section.start : section.end])
            assert section.tokens <= plan.budget or section.oversize
            plan.render(section)


def fuzz(seconds: float, seed: int) -> int:
    """Runs until the time is over; how many inputs were read or refused. Raises AssertionError, with the input."""
    rng = random.Random(seed)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = HFTokenizer(models.BPE({byte: i for i, byte in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = load_tokenizer(backend)
    tried, end = 0, time.monotonic() + seconds
    everything = [text for texts in SEEDS.values() for text in texts]
    while time.monotonic() < end:
        format = rng.choice(list(FORMATS))
        text = mutate(rng.choice(SEEDS[format]), rng.choice(everything), rng)
        tried += 1
        try:
            document = parse(text, format)
        except InputError:
            continue
        except Exception as error:
            raise AssertionError(f"{format} {text!r}: {type(error).__name__}: {error}") from error
        try:
            check(document, tokenizer)
        except Exception as error:
            raise AssertionError(f"{format} {text!r}: {error or type(error).__name__}") from error
    return tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tried = fuzz(options.seconds, options.seed)
    print(f"{tried:,} inputs in {options.seconds:g} s, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
