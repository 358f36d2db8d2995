"""What a language model is worth: searches with and without one, recorded once and replayed without it."""
