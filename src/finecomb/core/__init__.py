"""Data model: documents, spans, marks, annotations, protocols and studies. No I/O."""
