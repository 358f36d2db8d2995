"""What a model is told: the knowledge base, what of it is retrieved, lessons, and the budget."""
