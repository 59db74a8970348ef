"""`python -m treeagent`, the same as the command `treeagent`."""

from .cli import entry

if __name__ == "__main__":  # worker processes import this file again
    entry()
