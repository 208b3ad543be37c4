"""Prints the text of documents.

Libraries read them: pypdf (or its predecessor PyPDF2), python-docx, python-pptx and pylatexenc. They are looked for
when they are needed; if one is missing a line says how to install it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["parse_pdf", "parse_docx", "parse_latex", "parse_pptx"]


def _library(package: str, *modules: str) -> ModuleType | None:
    """The first of the modules that can be imported, or nothing and a message."""
    for module in modules:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            # A library that is there and lacks one of its own is another matter.
            if error.name != module.split(".")[0]:
                raise
    print(f"ERROR: The Python package {package} is needed and is not installed. Install it with: pip install {package}")
    return None


def parse_pdf(file_path: str) -> None:
    """Prints the text of a PDF file, page by page.

    Args:
        file_path: The file.
    """
    pypdf = _library("pypdf", "pypdf", "PyPDF2")
    if pypdf is None:
        return
    print(f"[Reading PDF file from {file_path}]")
    pages = pypdf.PdfReader(file_path).pages
    text = "".join(f"@@ Page {number} @@\n{page.extract_text()}\n\n" for number, page in enumerate(pages, 1))
    print(text.strip())


def parse_docx(file_path: str) -> None:
    """Prints the text of a Word file, paragraph by paragraph.

    Args:
        file_path: The file.
    """
    docx = _library("python-docx", "docx")
    if docx is None:
        return
    print(f"[Reading DOCX file from {file_path}]")
    paragraphs = docx.Document(file_path).paragraphs
    print("".join(f"@@ Page {number} @@\n{paragraph.text}\n\n" for number, paragraph in enumerate(paragraphs, 1)))


def parse_latex(file_path: str) -> None:
    """Prints what a LaTeX file says, as plain text.

    Args:
        file_path: The file.
    """
    latex2text = _library("pylatexenc", "pylatexenc.latex2text")
    if latex2text is None:
        return
    print(f"[Reading LaTex file from {file_path}]")
    with open(file_path, encoding="utf-8") as file:
        source = file.read()
    print(latex2text.LatexNodes2Text().latex_to_text(source).strip())


def parse_pptx(file_path: str) -> None:
    """Prints the texts of a PowerPoint file, slide by slide.

    Args:
        file_path: The file.
    """
    pptx = _library("python-pptx", "pptx")
    if pptx is None:
        return
    print(f"[Reading PowerPoint file from {file_path}]")
    texts = []
    try:
        for number, slide in enumerate(pptx.Presentation(str(file_path)).slides, 1):
            texts.append(f"@@ Slide {number} @@")
            # Pictures, tables and charts have no text.
            texts += [shape.text for shape in slide.shapes if hasattr(shape, "text")]
    except Exception as error:
        print(f"Error reading PowerPoint file: {error}")
        return
    print("\n".join(texts))
