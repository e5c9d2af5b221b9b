"""Evidence: documents cut into passages, indexed, and searched by words, by meaning or by both."""
