"""`crowdveil` and `python -m crowdveil`: Ctrl-C is understood before anything heavy is loaded."""

from crowdveil._signals import stopping_at_once

with stopping_at_once():
    from crowdveil.cli import main

if __name__ == "__main__":
    main()
