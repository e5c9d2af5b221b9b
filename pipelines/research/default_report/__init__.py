"""What the shipped default does on the questions of the sample data.

`python -m pipelines.research.default_report` asks the questions one run at a time and writes a
table: answers right and wrong, what the methods doubt, what they mend and spoil, and time.
"""
