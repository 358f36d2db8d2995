"""Third-party solutions: run in a sandbox, compared by the judge."""
