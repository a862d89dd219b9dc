"""Public functions of `import finecomb as fc`, one per command; the command line and the server call them."""
