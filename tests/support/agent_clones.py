"""Clones of the agents' repositories, as files by path: the names and constructs of the real sources, our sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

EVALUATION = "taskutils/memory_eval/utils"
MEMORY = 'TEMPLATE = """Read on, and note.\n\n<problem> \n{prompt}\n</problem>\n\n<memory>\n{memory}\n</memory>\n\n'
MEMORY += '<section>\n{chunk}\n</section>\n\nUpdated memory:\n"""\n'
RECALLED = "<recalled_memory>\n{recalled_memory}\n</recalled_memory>\n\n<memory>"
ASIDE = '''
NO_MEMORY = "No previous memory"


def clip(string, max_length=2000):
    """Clips."""
    return re.sub('\\d', "", string[: max_length // 2]) + '\\n\\n...(cut)\\n\\n'


async def query(item):
    msg = TEMPLATE.format(prompt=item, chunk="", memory=NO_MEMORY)
'''
"""What stands around the templates."""


def final(name: str, clause: str, place: str = "prompt") -> str:
    """The source of an answer template; `clause` as it is spelled inside a string."""
    blocks = f"<problem> \n{{{place}}}\n</problem>\n\n<memory>\n{{memory}}\n</memory>"
    return f'{name} = """Now answer {clause}.\n\n{blocks}\n\nYour answer:\n"""\n'


SAID, BOXED = 'like "Therefore, the answer is (insert answer here)"', r"in \\boxed{{}}"

PLAN = '''TEMPLATE_CALL_OR_ANSWER = """
Call `retrievesearch`, or say STOP.


ORIGINAL QUESTION:
{prompt}

<retrieval_history>
{retrieval_history}
</retrieval_history>



CURRENT MEMORY:
{memory}

"""
'''
WRITE = '''TEMPLATE_RETREIVE_RECURRENT = """Note what both parts say.

<problem>
{prompt}
</problem>

<retrieved_chunk>
{retrieve}
</retrieved_chunk>

<recurrent_chunk>
{chunk}
</recurrent_chunk>

<memory>
{memory}
</memory>


Updated memory:
"""
'''
TOOL = """
FN_NAME = '✿FUNCTION✿'


def get_bm25search_tool_schema():
    return {
        "type": "function",
        "function": {
            "name": "retrievesearch",
            "description": "Looks words up in the whole text.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "Words – the rarer the better."
                    },
                    "top_k": {
                        "type": "integer",
                        "description": "How many.",
                        "minimum": 3,
                        "maximum": 20,
                        "default": 8
                    },
                },
                "required": ["query"]
            },
        },
    }
"""
DECOMPOSE = '''DECOMPOSING_OR_ANSWERING_TEMPLATE = """Be silent, or ask one thing in <query> tags.
Nothing inside <confirmed>...</confirmed>, please.

<question>
{question}
</question>

<memory>
{memory}
</memory>

<query_history>
{decomposed_history}
</query_history>

"""
'''
INTEGRATE = '''INTEGRATING_TEMPLATE = """Merge, with <confirmed>...</confirmed> where both say it.

<question>
{question}
</question>

<memory>
{memory}
</memory>

<reference>
<subquestion>
{subquestion}
</subquestion>
<subanswer>
{answer}
</subanswer>
</reference>

Updated memory:
"""
'''
RECALLING = MEMORY.replace("note.", "<update>note</update>, or `<recall>what?</recall>`.").replace("<memory>", RECALLED)

MEMAGENT = {
    f"{EVALUATION}/recurrent.py": "import os\n\n" + MEMORY + "\n" + final("TEMPLATE_FINAL", SAID) + ASIDE,
    f"{EVALUATION}/recurrent_boxed.py": "import os\n\n" + MEMORY + "\n" + final("TEMPLATE_FINAL", BOXED) + ASIDE,
}
CLONES: Mapping[str, Mapping[str, str]] = {
    "memagent": MEMAGENT,
    "infmem": {
        **MEMAGENT,
        f"{EVALUATION}/infmem.py": "\nimport json\n\n"
        + PLAN
        + WRITE
        + MEMORY.replace("TEMPLATE", "ORIGINAL_TEMPLATE", 1)
        + final("ORIGINAL_TEMPLATE_FINAL", SAID)
        + final("TEMPLATE_FINAL", SAID)
        + TOOL,
    },
    "memreread": {
        "recursive/prompts.py": "\n"
        + MEMORY.replace("TEMPLATE", "MEMAGENT_READING_TEMPLATE", 1)
        + DECOMPOSE
        + final("ANSWERING_TEMPLATE", BOXED, "question")
        + INTEGRATE
    },
    "rememr1": {
        **MEMAGENT,
        f"{EVALUATION}/rememr1.py": "import re\n"
        + RECALLING
        + final("TEMPLATE_FINAL_BOXED", BOXED).replace("<memory>", RECALLED)
        + ASIDE,
    },
}
"""Clones by agent: files of the real paths, with the names and the constructs of the real sources."""


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """The folder with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder
