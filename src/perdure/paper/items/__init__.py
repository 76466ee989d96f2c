"""Tables and figures of the paper, one file each: its runs, the published numbers, its drawing."""
