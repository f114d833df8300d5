"""A progress bar on stderr beside the lines on stdout: tqdm's if installed, else a plain one.

It shows on a terminal only; in a file the lines themselves tell how far it is.
"""

import sys


class Progress:
    """Counts up to `total`; `say` prints a line above the bar."""

    WIDTH = 30

    def __init__(self, total, stream=None):
        self.total, self.done = total, 0
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty()
        self.bar = self._tqdm() if self.shown else None

    def _tqdm(self):
        try:
            from tqdm import tqdm
        except ImportError:
            return None
        return tqdm(total=self.total, file=self.stream, leave=False, unit="cell")

    def say(self, text=""):
        """Print a line to stdout."""
        self._clear()
        print(text, flush=True)
        self._draw("")

    def advance(self, what):
        """Count one more; `what` is about to begin."""
        self.done += 1
        if self.bar is not None:
            self.bar.set_description_str(what, refresh=False)
            self.bar.update()
        else:
            self._draw(what)

    def tell(self, what):
        """Show what goes on, without counting."""
        if self.bar is not None:
            self.bar.set_description_str(what)
        else:
            self._draw(what)

    def close(self):
        if self.bar is not None:
            self.bar.close()
        else:
            self._clear()

    def _clear(self):
        if self.bar is not None:
            self.bar.clear()
        elif self.shown:
            self.stream.write("\r\033[K")
            self.stream.flush()

    def _draw(self, what):
        if self.bar is not None:
            self.bar.refresh()
        elif self.shown:
            filled = self.WIDTH * self.done // max(1, self.total)
            bar = "#" * filled + " " * (self.WIDTH - filled)
            self.stream.write(f"\r\033[K[{bar}] {self.done}/{self.total} {what}")
            self.stream.flush()
