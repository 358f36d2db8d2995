"""Language models: requests to an endpoint, their cost, their storage and their replay."""
