"""What all services reached over a network share: addresses, keys, and what they say went wrong."""
