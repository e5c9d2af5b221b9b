"""What screens show: pure functions from values of the engine to HTML, figures and data frames."""
