"""Where the command line touches the world outside."""
