#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every colour of text on the page has a contrast of 4.5 with what it stands on, light and dark (WCAG AA);
a printed page has the colours for paper whatever the screen had."""
import os
import re

from common import SRC, expect, finish

with open(os.path.join(SRC, "tools/export/page/page.css"), encoding="utf-8") as f:
    css = f.read()
ON = {"ink": ("paper", "card", "sunk", "warn-soft", "accent-soft"), "soft": ("paper", "card", "sunk"), "faint": ("paper", "card", "sunk"),
      "accent": ("paper", "card"), "bad": ("card", "bad-soft"), "warn": ("warn-soft",), "good": ("good-soft",), "less": ("card",), "paper": ("ink",)}


def light(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= .03928 else ((p + .055) / 1.055) ** 2.4 for p in parts]
    return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2]


def contrast(a, b):
    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + .05) / (low + .05)


themes = {name: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
          for name, block in re.findall(r":root(\[data-theme=\"dark\"\])? \{(.*?)\n\}", css, flags=re.S)}
expect(len(themes) == 2, f"two themes: {list(themes)}")
for name, colours in themes.items():
    for text, grounds in ON.items():
        for ground in grounds:
            found = contrast(colours[text], colours[ground])
            expect(found >= 4.5, f"{name or 'light'}: {text} {colours[text]} on {ground} {colours[ground]}: {found:.2f}")
expect(re.search(r"@media screen \{ :root\[data-theme=\"dark\"\]", css), "dark colours are for screens alone")
expect(":focus-visible { outline: 2px" in css, "where the keyboard is shows")
finish()
