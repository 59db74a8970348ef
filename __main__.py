"""`python -m treeagent`, the same as the command `treeagent`."""

from .cli import entry

entry()
