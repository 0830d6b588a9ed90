"""``python -m tinyclaw`` is the ``tinyclaw`` command."""

from tinyclaw.cli.main import main

if __name__ == "__main__":
    main()
