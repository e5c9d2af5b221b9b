"""What every page is made of: words in both languages, HTML, elements, figures."""
