"""A place where tests run the command as a user does."""
