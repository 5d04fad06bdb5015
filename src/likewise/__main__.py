"""`python -m likewise` is the command line."""

from likewise.app.cli import main

if __name__ == "__main__":
    main()
