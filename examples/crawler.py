"""A crawler whose queue is its own table: `python examples/crawler.py` (or `make demo-queue`).

A local site is crawled by four processes: take the next page, fetch it, note what came and queue the pages it links to,
in one commit. One worker is killed in mid-page, one page always fails (the site answers 500), and one is paused and
resumed. At the end every promise is checked against what the site has noted: exit code 1 if one is broken.

The code to copy is in crawling/model.py and crawling/job.py; the rest of that folder is the stage.
"""

if __name__ == "__main__":
    import sys
    from pathlib import Path

    # The folder above this one instead of this one, so that the two examples can share their stage. Not at the top: the
    # worker processes import this file too.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

    from examples.crawling.stage import main

    sys.exit(main())
