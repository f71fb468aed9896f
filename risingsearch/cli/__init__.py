"""The command line: ``risingsearch demo | policies | simulate | run ...``."""
