"""What is read: documents as trees, records, the benchmark."""
