"""Results for programs: the JSON documents and their schemas, CSV, JUnit, Markdown, SARIF and profiles."""
