"""`python -m finecomb`: the command line, where the program is not on the path."""

from finecomb.cli import main

if __name__ == "__main__":
    main()
