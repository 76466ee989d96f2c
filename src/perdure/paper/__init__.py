"""Every table and figure of the paper, one file each; the folder is the registry."""
