"""Worker processes with one thread each, which are replaced if they die, and executors of other libraries."""

from __future__ import annotations

import collections
import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from dynascope.errors import InputError
from dynascope.sweeps.cells import Cell
from dynascope.sweeps.entries import failed_entry, reason_of, run_block
from dynascope.validation import require

if TYPE_CHECKING:
    from dynascope.sweeps.runs import Run

__all__ = ["finished_in_executor", "finished_in_processes", "require_main_guard", "require_portable"]

Entries = list[dict[str, Any]]
Block = list[Cell]
_DEATHS = 3  # of workers that computed one block alone, after which the block has failed
_DIED = "the worker process died, for example because it ran out of memory"
# NPROC is the number of threads of XLA.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NPROC")


def require_portable(run: Run) -> None:
    """Require that a run can be sent to another process.

    Raises:
        InputError: The function, or an argument, cannot be pickled.
    """
    try:
        pickle.dumps(run)
    except Exception as error:  # pickle raises unrelated errors
        raise InputError(
            f"{run.name} cannot be sent to worker processes ({reason_of(error)})",
            argument="run",
            value=run.name,
            remedy="define the function at the top level of a module, or pass workers=0 to compute in this process",
        ) from None


def require_main_guard(function: Any) -> None:
    """Reject a sweep that a script starts while a worker process imports it.

    Raises:
        InputError: The function was defined in such a script.
    """
    imported = getattr(function, "__module__", "") == "__mp_main__"
    problem, remedy = "a worker process imports this script", 'call ds.sweep below if __name__ == "__main__":'
    require(not imported, problem, argument="run", remedy=remedy)


def finished_in_processes(
    run: Run, axes: Mapping[str, Sequence[Any]], plan: Sequence[Block], workers: int
) -> Iterator[tuple[Block, Entries]]:
    """Compute blocks in spawned processes, and yield each with its entries as soon as it is finished.

    If a worker dies, the blocks that were being computed are computed again, one at a time, so that a further death
    shows which block causes it. A block whose worker dies three times while it is computed alone has failed.
    """
    waiting, suspects = collections.deque(plan), collections.deque[Block]()
    deaths: dict[tuple[Cell, ...], int] = {}  # of workers while a block was computed alone
    running: dict[Future[Entries], Block] = {}
    pool = _Pool(workers)
    try:
        while waiting or suspects or running:
            alone = bool(suspects) or any(tuple(block) in deaths for block in running.values())
            source, most = (suspects, 1) if alone else (waiting, workers)
            broken = False
            while source and len(running) < most and not broken:
                try:
                    running[pool.submit(run_block, run, axes, source[0])] = source[0]
                    source.popleft()
                except BrokenProcessPool:  # a worker died without work
                    broken = True
            if not broken:
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                broken = any(isinstance(future.exception(), BrokenProcessPool) for future in done)
            if broken:
                pool.require_started()
                pool.stop()  # afterwards, every future is finished or broken
                pool = _Pool(workers)
            lost = []
            for future in [future for future in running if future.done()]:
                block = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    lost.append(block)
                    continue
                deaths.pop(tuple(block), None)
                yield block, _entries(future, block)
            for block in lost:
                deaths[tuple(block)] = deaths.get(tuple(block), 0) + (len(lost) == 1)
                if deaths[tuple(block)] < _DEATHS:
                    suspects.append(block)
                else:
                    del deaths[tuple(block)]
                    yield block, [failed_entry(cell, _DIED) for cell in block]
    finally:
        pool.stop()


def finished_in_executor(
    executor: Executor, run: Run, axes: Mapping[str, Sequence[Any]], plan: Sequence[Block], workers: int
) -> Iterator[tuple[Block, Entries]]:
    """Compute blocks in an executor of the user, with a limited number of blocks submitted at a time."""
    waiting = collections.deque(plan)
    running: dict[Future[Entries], Block] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                block = waiting.popleft()
                running[executor.submit(run_block, run, axes, block)] = block
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                block = running.pop(future)
                yield block, _entries(future, block)
    finally:
        for future in running:
            future.cancel()


def _entries(future: Future[Entries], block: Block) -> Entries:
    """The entries of a block; if its result was lost on the way, for example because it cannot be sent, it failed.

    Raises:
        BrokenExecutor: The executor has ended.
    """
    try:
        return future.result()
    except (concurrent.futures.BrokenExecutor, concurrent.futures.CancelledError):
        raise
    except Exception as error:
        return [failed_entry(cell, reason_of(error)) for cell in block]


class _Pool:
    """Spawned processes, which exit when the parent stops them or dies."""

    def __init__(self, workers: int):
        context = multiprocessing.get_context("spawn")
        # Workers wait for the end of a pipe that nobody writes to: it ends when the parent closes it or is killed.
        self._reader, self._writer = context.Pipe(duplex=False)
        self._started = context.Event()
        arguments = self._reader, self._started
        self._pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=arguments)
        self.submit = self._pool.submit

    def require_started(self) -> None:
        """Raise `InputError` if all workers died before they could compute anything."""
        remedy = 'call ds.sweep below if __name__ == "__main__": in a file, or pass workers=0'
        problem = "worker processes end while they start; the messages above state why"
        require(self._started.is_set(), problem, argument="workers", remedy=remedy)

    def stop(self) -> None:
        self._writer.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._reader.close()


def _start(parent: Connection, started: Any) -> None:
    """Limit this worker to one thread, and end it with its parent."""
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt ends the parent, and thus this worker
    from threadpoolctl import threadpool_limits  # loaded after the variables are set

    threadpool_limits(1)
    started.set()


def _exit_with(parent: Connection) -> None:
    parent.poll(None)
    os._exit(0)
