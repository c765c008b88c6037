"""Python's own module; start processes with the method "spawn". A process has tensors of its own: pass NumPy arrays."""

from multiprocessing import *  # noqa: F401,F403


def set_sharing_strategy(new_strategy):
    """Tensors are not shared between processes."""


def get_sharing_strategy():
    return "none"


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs fn(i, *args) in nprocs processes."""
    import multiprocessing

    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for p in processes:
        p.start()
    if not join:
        return processes
    for p in processes:
        p.join()
    failed = [i for i, p in enumerate(processes) if p.exitcode != 0]
    if failed:
        raise RuntimeError(f"process {failed[0]} terminated with exit code {processes[failed[0]].exitcode}")
    return None
