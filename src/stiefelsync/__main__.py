"""``python -m stiefelsync``, where the shell does not find the program."""

from stiefelsync._start import main

if __name__ == "__main__":
    main()
