"""From the images of MNIST to the file of pen strokes that comes with Perdure; a tool outside the package."""
