"""`python -m likewise` is the command line."""

from likewise.cli.main import main

if __name__ == "__main__":
    main()
