"""Work on whole corpora: critics, text generation, preparation and stress tests of metrics."""
