"""The cron job of a video site, four times at once: `python examples/download.py` (or `make demo`).

A local HTTP server serves a folder of files, and a table `videos` has a row for each. Four processes run the
same cron job side by side: take the next row that nobody works on, download it, note path, size and SHA-256,
release it. One file always fails (the server answers 500), and one worker is killed in mid-download. At the end
every promise is checked against what the server has counted and what is on disk: exit code 1 if one is broken.

The code to copy is in downloading/model.py and downloading/job.py; the rest of that folder is the stage.
`cron.py` is the same job in 25 lines.
"""

if __name__ == "__main__":
    import sys

    # Beside this file, where Python looks first and type checkers do not. Not at the top: the worker processes
    # import this file too, and have no need of the stage.
    from downloading.stage import main  # type: ignore[import-not-found]

    sys.exit(main())
