"""Choices: a chosen row stays as long as it is a candidate; when it goes, another one gets its keys."""
