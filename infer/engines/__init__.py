"""What answers an agent's requests: local models and canned replies."""
