"""Work on whole corpora: critics, generation, preparation and stress tests of metrics."""
