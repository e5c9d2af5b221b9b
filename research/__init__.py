"""Makes and measures what ships: judge, calibrations, adapters. The product imports none of it."""
