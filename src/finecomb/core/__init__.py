"""The data model: documents, spans, marks, annotations, protocols, studies. No I/O."""
