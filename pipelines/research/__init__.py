"""Makes and measures what ships: judge, calibrations, adapters. Nothing in the product imports it."""
