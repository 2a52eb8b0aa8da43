"""The dossier for a certification file: sections, numbering, HTML and PDF."""
