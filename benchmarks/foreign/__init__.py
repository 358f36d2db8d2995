"""Solutions of others: run in a sandbox, compared by the judge."""
