"""Data and plots in benches/results."""

import csv
import pathlib

import plot

RESULTS = pathlib.Path(__file__).parents[1] / "results"


def save(name, rows):
    """Writes the rows of a sweep; the first column is what grows."""
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"by-{name}.csv", "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, dict.fromkeys(column for row in rows for column in row))
        writer.writeheader()
        writer.writerows(rows)


def saved(name):
    """The rows that an earlier run has saved, as numbers."""
    path = RESULTS / f"by-{name}.csv"
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as rows:
        return [{column: float(value) if "." in value else int(value) for column, value in row.items() if value}
                for row in csv.DictReader(rows)]


def draw(name, x_label, field, label, rows, columns):
    """Plots columns of rows, each with its title, as one figure."""
    lines = {title: [(row[name], row[column]) for row in rows if column in row] for column, title in columns.items()}
    plot.write(RESULTS / f"{name}-{field.replace('_', '-')}.svg", f"{label} by {x_label}", x_label, label, lines)
