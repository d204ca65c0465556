"""`tuigpt list`: runs and their checkpoints, from headers only."""

from pathlib import Path

from tuigpt.config import UserError
from tuigpt.runs.store import Run, find_run, open_run, run_folders
from tuigpt.wording import file_size, loss_text, one_line


def run(home: Path, name: str | None) -> int:
    """Print each run with its state, and each checkpoint with step, losses and size.

    Raises:
        UserError: there is no run of that name.
    """
    if name is not None:
        _print(find_run(name, home))
        return 0
    folders = list(run_folders(home))
    if not folders:
        print("No runs yet: `tuigpt train` starts one.")
    for folder in folders:
        try:
            _print(open_run(folder))
        except UserError as error:
            print(f"{one_line(folder.name)}  {one_line(str(error))}")
    return 0


def _print(run: Run) -> None:
    status = run.status
    message = f"  {one_line(status.message)}" if status.message else ""
    print(
        f"{one_line(run.name)}  {one_line(status.state)}"
        f"  step {status.step:,}/{status.max_steps:,}{message}"
    )
    for checkpoint in run.checkpoints:
        star = "★" if run.best is checkpoint else " "
        if checkpoint.problem:
            print(f"  {checkpoint.step:>8,}  cannot be opened: {one_line(checkpoint.problem)}")
            continue
        print(
            f"  {checkpoint.step:>8,}  train {loss_text(checkpoint.train_loss):>5}"
            f"  val {loss_text(checkpoint.val_loss):>5} {star} {file_size(checkpoint.size):>7}"
        )
