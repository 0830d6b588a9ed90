"""Slash commands of the prompt. Every public module here is one command of the same name."""
