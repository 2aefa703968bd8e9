"""What this project pretends where there is no GPU. Each thing in here says of itself that it is simulated."""
