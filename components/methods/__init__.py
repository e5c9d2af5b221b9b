"""What each method found, as its page shows it."""
