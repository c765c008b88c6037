"""There are no quantized operators."""

engine = "none"
supported_engines = ["none"]
