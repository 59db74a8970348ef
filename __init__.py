"""treeagent: language models that read structured documents section by section along their own tree."""
