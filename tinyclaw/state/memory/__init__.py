"""What is remembered: one Markdown file a record in .memory/, and the index in MEMORY.md that is made of them."""
