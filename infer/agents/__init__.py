"""The reading agents, as generators without input or output."""
