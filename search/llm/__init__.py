"""Language models: asking an endpoint, counting what it costs, storing and replaying it."""
