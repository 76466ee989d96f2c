"""From the images of MNIST to the file of pen strokes included with Perdure; a tool outside the package."""
