"""The REST API at `/v1/`: parse, call a service or a selector, answer JSON. `root` puts it together."""
