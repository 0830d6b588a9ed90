"""What the model can do. Every public module here is one tool of the same name."""
