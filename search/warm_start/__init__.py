"""What a search starts from: autoschedules, the user's schedule, winners of other searches."""
