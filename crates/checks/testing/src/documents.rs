//! Documents made by hand.

/// A PDF of these objects, the first of them the catalogue.
pub fn pdf(objects: &[String]) -> Vec<u8> {
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), String::new());
    for (number, object) in (1..).zip(objects) {
        table = format!("{table}{:010} 00000 n \n", file.len());
        file = format!("{file}{number} 0 obj\n{object}\nendobj\n");
    }
    let (start, count) = (file.len(), objects.len() + 1);
    let trailer = format!("trailer << /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    format!("{file}xref\n0 {count}\n0000000000 65535 f \n{table}{trailer}").into_bytes()
}

/// The object of a stream, with these entries besides its length.
pub fn pdf_stream(entries: &str, content: &str) -> String {
    format!("<< {entries} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A PDF of one page, whose content is drawn by the forms behind it, each of which draws the next one; a single one draws
/// itself.
pub fn pdf_of_forms(content: &str, forms: &[String]) -> Vec<u8> {
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";
    let resources = format!("/Resources << /XObject << /F 5 0 R >> /Font << /F1 {font} >> >>");
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] {resources} /Contents 4 0 R >>"),
        pdf_stream("", content),
    ];
    for (number, form) in (5..).zip(forms) {
        let next = if forms.len() == 1 { number } else { number + 1 };
        let resources = format!("/Resources << /XObject << /F {next} 0 R >> >>");
        objects.push(pdf_stream(&format!("/Type /XObject /Subtype /Form /BBox [0 0 300 300] {resources}"), form));
    }
    pdf(&objects)
}

/// A PDF whose page draws a form that draws itself.
pub fn self_drawing_pdf() -> Vec<u8> {
    pdf_of_forms("/F Do", &["/F Do".to_owned()])
}

/// A PDF of ten forms, each of which draws the next one ten times.
pub fn ten_fold_pdf() -> Vec<u8> {
    let mut forms = vec!["/F Do ".repeat(10); 10];
    forms.push("0 0 1 1 re f".to_owned());
    pdf_of_forms("/F Do", &forms)
}
