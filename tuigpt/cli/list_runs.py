"""`tuigpt list`: runs and their checkpoints, from headers only."""

from pathlib import Path

from tuigpt.errors import UserError
from tuigpt.runs.folder import POET, Run, is_run, open_run, run_folders
from tuigpt.runs.names import find_model
from tuigpt.runs.poet import hide_poet, listed_poet, poet_is_hidden
from tuigpt.wording import file_size, loss_text, one_line


def run(home: Path, name: str | None, hide: bool | None = None) -> int:
    """Print each run with its state, and each checkpoint with step, losses and size.

    Args:
        hide: leave the built-in model out from now on, or show it again; None leaves it as it is.

    Raises:
        UserError: there is no run of that name, or the settings cannot be written.
    """
    if hide is not None:
        hide_poet(home, hide)
    if name is not None:
        _print(find_model(name, home))
        return 0
    folders = list(run_folders(home))
    if not folders:
        print("No runs yet: `tuigpt train` starts one.")
    for folder in folders:
        try:
            _print(open_run(folder))
        except UserError as error:
            print(f"{one_line(folder.name)}  {one_line(str(error))}")
    poet = listed_poet(home)
    if poet is not None:
        _print(poet)
    elif is_run(POET, home) and not poet_is_hidden(home):
        print(f"Your run {POET} has the built-in model's name; rename its folder to have both.")
    return 0


def _print(run: Run) -> None:
    status = run.status
    message = f"  {one_line(status.message)}" if status.message else ""
    state = f"{one_line(status.state)}  step {status.step:,}/{status.max_steps:,}{message}"
    print(f"{one_line(run.name)}  {'built in' if run.built_in else state}")
    for checkpoint in run.checkpoints:
        star = "★" if run.best is checkpoint else " "
        if checkpoint.problem:
            print(f"  {checkpoint.step:>8,}  cannot be opened: {one_line(checkpoint.problem)}")
            continue
        print(
            f"  {checkpoint.step:>8,}  train {loss_text(checkpoint.train_loss):>5}"
            f"  val {loss_text(checkpoint.val_loss):>5} {star} {file_size(checkpoint.size):>7}"
        )
