"""The session's only record: one Markdown file that is the event log, the snapshot and the thing to commit.

``grammar`` turns blocks into lines and back, ``bodies`` carries any text through Markdown exactly,
``content`` maps messages to blocks, ``fold`` makes the conversation out of them, ``prefixes`` keeps
what the provider's cache holds, ``store`` owns the file, ``sessions`` finds them.
"""
