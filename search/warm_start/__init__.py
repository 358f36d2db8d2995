"""Seed candidates of a search: autoschedules, the user's schedule, results of other searches."""
