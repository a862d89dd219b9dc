"""The tables and figures of five papers, in each paper's own layout, from any study of its protocol."""
