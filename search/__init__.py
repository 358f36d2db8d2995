"""The search: it asks for candidates, evaluates them, keeps the better ones, and stores every
result."""
