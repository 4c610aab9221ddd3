"""`python -m crowdveil`."""

from crowdveil.cli import main

if __name__ == "__main__":
    main()
