"""`python -m xclaw`: the same as the command."""

from xclaw.cli.main import main

if __name__ == "__main__":
    main()
