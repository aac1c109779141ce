"""OpenTelemetry: spans to steps, whether they come over OTLP/HTTP from a pipeline or from this process's own tracer."""
