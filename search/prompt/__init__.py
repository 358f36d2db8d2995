"""The contents of prompts: the knowledge base, retrieval, lessons, and the budget of tokens."""
