"""The Evaluate page: data, methods, progress, results, comparison, studies."""
