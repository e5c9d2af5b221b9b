"""Files that people bring, told apart by what they hold and read into plain text."""
