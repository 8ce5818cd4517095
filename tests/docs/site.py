#!/usr/bin/env python3
"""Makes a web site of README.md, docs/ and CHANGELOG.md, or checks their links.

  site.py --check   every link to a file or a heading leads somewhere; installs nothing
  site.py FOLDER    the site, by Sphinx (pip install sphinx myst-parser furo; --python says which Python has them)

The README is the first page, and its table "Read on" is the menu.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
PAGES = [tools.ROOT / "README.md", tools.ROOT / "CHANGELOG.md", *sorted((tools.ROOT / "docs").rglob("*.md"))]

SETTINGS = """\
project = "Sinter"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Sinter"
html_show_sphinx = html_show_copyright = html_copy_source = False
html_static_path = ["static"]
html_css_files = ["wide.css"]
highlight_language = "text"
myst_heading_anchors = 6
suppress_warnings = ["myst.header"]
"""


def prose(text):
    """The text without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def anchors(page):
    """The anchors of the headings of a page, as GitHub and Sphinx make them."""
    titles = re.findall(r"^#+ (.*)$", prose(page.read_text()), re.M)
    plain = [re.sub(r"[^\w\s-]", "", LINK.sub(r"\1", title)).strip().lower() for title in titles]
    return {re.sub(r"\s", "-", title) for title in plain}


def wrong_links():
    for page in PAGES:
        text = prose(page.read_text())
        for target in [link[1] for link in LINK.findall(text)] + IMAGE.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            where = page.relative_to(tools.ROOT)
            if not file.exists():
                yield f"{where}: {target}: there is no such file"
            elif anchor and anchor not in anchors(file):
                yield f"{where}: {target}: no heading has this anchor"


def for_site(page, text):
    """The text of a page with links as they lie on the site; what is not on it is named without a link."""
    def moved(match):
        path, hash_, anchor = match[2].partition("#")
        if re.match(r"[a-z]+:", match[2]) or not path:
            return match[0]
        file = (page.parent / path).resolve()
        if file not in PAGES:
            return match[1]
        depth = "../" * (len(place(page).parts) - 1)
        return f"[{match[1]}]({depth}{place(file).as_posix()}{hash_}{anchor})"

    text = LINK.sub(moved, text)
    return re.sub(r"(!\[[^\]]*\]\()docs/", r"\1", text) if page.parent == tools.ROOT else text


def place(page):
    """Where a page lies on the site."""
    names = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
    file = page.relative_to(tools.ROOT)
    return Path(names[file.name]) if file.name in names else file.relative_to("docs")


def menu():
    """The table "Read on" of the README, as Sphinx wants it."""
    readme = (tools.ROOT / "README.md").read_text()
    for title, links in re.findall(r"^\| ([^|]+) \| (.*) \|$", readme.split("## Read on")[1], re.M):
        pages = [tools.ROOT / path for _, path in LINK.findall(links) if "#" not in path]
        yield title, [page for page in pages if page in PAGES]
    yield "decisions", [page for page in PAGES if page.parent.name == "decisions"]


def build(out, python):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        for page in PAGES:
            target = scratch / place(page)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(for_site(page, page.read_text()))
        with (scratch / "index.md").open("a") as first:
            for title, pages in menu():
                first.write(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n" + "\n".join(place(page).as_posix() for page in pages) + "\n```\n")
        for picture in (tools.ROOT / "docs").glob("*.svg"):
            shutil.copy(picture, scratch)
        (scratch / "conf.py").write_text(SETTINGS)
        (scratch / "static").mkdir()
        (scratch / "static/wide.css").write_text(".content { width: 64em; }\n")
        sys.exit(subprocess.run([python, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", scratch, Path(out).resolve()]).returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="where the site goes")
    parser.add_argument("--check", action="store_true", help="check links and build nothing")
    parser.add_argument("--python", default=sys.executable, help="a Python that has sphinx, myst-parser and furo")
    options = parser.parse_args()
    if not options.check and not options.folder:
        parser.error("a folder for the site, or --check")
    wrong = sorted(set(wrong_links()))
    print("\n".join(wrong) or f"{len(PAGES)} pages, all links lead somewhere")
    if wrong:
        sys.exit(1)
    if options.folder:
        build(options.folder, options.python)


main()
