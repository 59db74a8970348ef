"""How reading is learned: GRPO over the same environment as evaluation."""
