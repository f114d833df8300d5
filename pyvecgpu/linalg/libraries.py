"""What computes where there is no kernel of our own: cuSOLVER on a GPU, else NumPy on the host."""

from .host import Host


def of(backend):
    """Return the object whose methods compute with Arrays on a backend, and give such."""
    if backend.device.type != "cuda":
        return Host(backend)
    from .cusolver import Cusolver  # loads the library

    return Cusolver(backend)
