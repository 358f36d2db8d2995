"""What a person sees of a search while it goes, on a terminal or in a log."""
