"""Lines with logarithmic axes as an SVG file: enough for growth, without a plotting library."""

import html
import math

COLOURS = ["#1558b0", "#c0392b", "#2e7d32"]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 80, 60, 40, 32


def decades(values):
    """The powers of ten that hold all values."""
    return math.floor(math.log10(min(values))), max(math.ceil(math.log10(max(values))), math.floor(math.log10(min(values))) + 1)


def power_of_ten(power):
    """As a label that is short however large it is."""
    if power < 0:
        return f"{10.0 ** power:g}"
    return f"{10 ** (power % 3):,} {' kMGT'[power // 3]}" if power >= 6 else f"{10 ** power:,}"


def write(path, title, x_label, y_label, lines):
    """Writes lines, by their titles, of points, which are pairs of positive numbers."""
    points = [point for line in lines.values() for point in line]
    (x_low, x_high), (y_low, y_high) = decades([x for x, _ in points]), decades([y for _, y in points])

    def x_at(value):
        return LEFT + (math.log10(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def y_at(value):
        return HEIGHT - BOTTOM - (math.log10(value) - y_low) / (y_high - y_low) * (HEIGHT - BOTTOM - TOP)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{html.escape(title)}</text>']
    for power in range(x_low, x_high + 1):
        x = x_at(10 ** power)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{power_of_ten(power)}</text>')
    for power in range(y_low, y_high + 1):
        y = y_at(10 ** power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{power_of_ten(power)}</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number]
        path_points = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path_points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in line]
        parts.append(f'<text x="{LEFT + 12}" y="{TOP + 18 + 16 * number}" fill="{colour}">{html.escape(name)}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{html.escape(x_label)}</text>')
    parts.append(f'<text transform="translate(18 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{html.escape(y_label)}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")
