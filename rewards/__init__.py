"""What a good answer is: extraction, scores, reward functions."""
