"""What models reply, read: lists, fields, verdicts."""
