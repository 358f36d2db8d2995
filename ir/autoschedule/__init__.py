"""The autoschedule: a good first schedule for any spec on any machine."""
