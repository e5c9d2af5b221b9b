"""What a judge is worth on every suite of odd-numbered records, beside another judge."""
