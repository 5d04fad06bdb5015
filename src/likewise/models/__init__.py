"""What is known about other people's models: how they are built, and what they answer."""
