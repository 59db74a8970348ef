"""`accelerate launch -m treeagent.train RECIPE [--dotted.key value]`: `treeagent train` on every process."""

from __future__ import annotations

import sys

from ..cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
