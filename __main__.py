"""The command line as ``python -m gradtape``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    if not __package__:  # python FOLDER
        folder = Path(__file__).resolve().parent
        sys.exit(
            f"{folder} is a package: run 'python -m gradtape' in {folder.parent}, or run 'pip "
            f"install {folder}' first"
        )
    from .public import incomplete

    try:
        from .cli import main

        code = main()
    except ModuleNotFoundError as error:
        sys.exit(f"gradtape: {incomplete(error)}")
    sys.exit(code)
