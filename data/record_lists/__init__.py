"""Readers of record lists: one module a kind of document, all over `data.tree.Document`."""
