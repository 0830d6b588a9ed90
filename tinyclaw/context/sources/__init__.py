"""What goes into the prompt. Every public module here is one source of the same name."""
