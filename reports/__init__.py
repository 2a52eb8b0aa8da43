"""Results as documents, screens, pictures and dossiers; a renderer reads a report and computes nothing."""
