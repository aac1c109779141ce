"""The JSON API, described by OpenAPI: the same services and the same figures as the pages."""
