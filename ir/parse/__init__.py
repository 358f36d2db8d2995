"""Reading: specs, workloads and schedules from their texts."""
