"""The picture of the README, drawn by its first program: ``python -m docs.readme_picture``."""

import re
import runpy
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "_static" / "regrown.png"


def main() -> None:
    """Run the first program of the README and draw its start, what is seen, and what is found."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(program, encoding="utf-8")
        names = runpy.run_path(str(path))
    pictures = {
        "the start": names["start"],
        "what is seen, 30 steps later": names["seen"],
        "the start, found by its gradient": names["found"].x.reshape(64, 64),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
    for ax, (title, field) in zip(axes, pictures.items(), strict=True):
        ax.imshow(field, vmin=0, vmax=1)
        ax.set_title(title, fontsize=10, color="#57606a")  # legible on light and dark pages
        ax.set_axis_off()
    figure.savefig(TARGET, dpi=100, transparent=True)


if __name__ == "__main__":
    main()
