"""The texts of documents (ipython-and-plugins 3.2)."""

import unittest

from gloveport.skills import parse_docx, parse_latex, parse_pdf, parse_pptx
from support import InDirectory, printed, run


def pdf(text):
    """A PDF file with one line."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", b""
    for number, content in enumerate(objects, 1):
        places += b"%010d 00000 n \n" % len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    tail = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + places + tail


class Readers(InDirectory):
    def test_a_pdf_file_is_printed_page_by_page(self):
        self.write("p.pdf", pdf("Hello, this is a test PDF document."))
        expected = "[Reading PDF file from p.pdf]\n@@ Page 1 @@\nHello, this is a test PDF document.\n"
        self.assertEqual(printed(parse_pdf, "p.pdf"), expected)

    def test_a_word_file_is_printed_paragraph_by_paragraph(self):
        import docx

        document = docx.Document()
        document.add_paragraph("Hello, this is a test document.")
        document.add_paragraph("This is the second paragraph.")
        document.save("p.docx")
        expected = (
            "[Reading DOCX file from p.docx]\n@@ Page 1 @@\nHello, this is a test document.\n\n"
            "@@ Page 2 @@\nThis is the second paragraph.\n\n\n"
        )
        self.assertEqual(printed(parse_docx, "p.docx"), expected)

    def test_a_latex_file_is_printed_as_plain_text(self):
        self.write("p.tex", "\\documentclass{article}\n\\begin{document}\n\\textbf{Hello}, $\\alpha$.\n\\end{document}\n")
        self.assertEqual(printed(parse_latex, "p.tex"), "[Reading LaTex file from p.tex]\nHello, α.\n")

    def test_slides_are_printed_with_the_texts_of_their_shapes(self):
        import pptx

        slides = pptx.Presentation()
        for title in ("Hello, this is the first slide.", "Hello, this is the second slide."):
            slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = title
        slides.save("p.pptx")
        expected = (
            "[Reading PowerPoint file from p.pptx]\n@@ Slide 1 @@\nHello, this is the first slide.\n\n"
            "@@ Slide 2 @@\nHello, this is the second slide.\n\n"
        )
        self.assertEqual(printed(parse_pptx, "p.pptx"), expected)

    def test_slides_that_can_not_be_read_are_said(self):
        self.write("p.pptx", "none")
        first, second, rest = printed(parse_pptx, "p.pptx").split("\n")
        self.assertEqual([first, rest], ["[Reading PowerPoint file from p.pptx]", ""])
        self.assertTrue(second.startswith("Error reading PowerPoint file: "), second)

    def test_other_documents_that_can_not_be_read_are_exceptions(self):
        for function in (parse_pdf, parse_docx, parse_latex):
            with self.assertRaises(Exception) as raised:
                printed(function, "missing")
            self.assertIn("missing", str(raised.exception))

    def test_a_missing_library_is_named_with_what_installs_it(self):
        for function, package, modules in (
            ("parse_pdf", "pypdf", ["pypdf", "PyPDF2"]), ("parse_docx", "python-docx", ["docx"]),
            ("parse_pptx", "python-pptx", ["pptx"]), ("parse_latex", "pylatexenc", ["pylatexenc"]),
        ):
            # An interpreter without the packages of its site.
            hide = (
                "class Hide:\n    def find_spec(self, name, *_):\n"
                f"        if name.split('.')[0] in {modules!r}: raise ModuleNotFoundError(name, name=name.split('.')[0])\n"
                "sys.meta_path.insert(0, Hide())\n"
            )
            said = run(f"{hide}from gloveport.skills import *\n{function}('x')")
            expected = f"ERROR: The Python package {package} is needed and is not installed. Install it with: pip install {package}\n"
            self.assertEqual(said, expected)


if __name__ == "__main__":
    unittest.main()
