//! The page of a comparison.

use crate::Folder;

#[test]
fn the_page_is_whole_and_needs_nothing_else() {
    let folder = Folder::new();
    folder.lines("<keys>", (0..1000).map(|number| format!("key-{number}")));
    folder.lines("queries", (0..5000).map(|number| format!("q-{}", number % 700)));
    let run = [
        "compare",
        "--keys",
        "<keys>",
        "--queries",
        "queries",
        "--report",
        "page.html",
        "--filters",
        "telescoping,bloom,xorf",
        "--seeds",
        "2",
    ];
    let told = folder.run(&run).code(0).out;
    assert!(told.ends_with("page.html\n"), "{told}");
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for outside in ["src=", "@import", "url(", "<iframe"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The only links are empty and local; the only addresses name a language.
    let addresses = page.matches("http").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
    assert!(page.contains("&lt;keys&gt;") && !page.contains("<keys>"));
    assert_eq!(page.matches("<figure>").count(), 5);
    assert_eq!(page.matches("<tr").count(), 4, "a heading and three filters");
    assert!(page.contains("In besom_store::RedbStore"), "{page}");
    assert!(!page.contains("NaN") && !page.contains("inf\""));
    assert_eq!(folder.names(), ["<keys>", "page.html", "queries"]);
}
