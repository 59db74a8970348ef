"""Public sources of documents, one module a source."""
