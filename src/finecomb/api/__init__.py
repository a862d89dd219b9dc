"""The functions of `import finecomb as fc`: one for every command, called by the command line and the server alike."""
