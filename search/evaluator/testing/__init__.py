"""What tests of evaluators share."""
