"""How a document is read: sections, observations, agents, engines, evaluation."""
