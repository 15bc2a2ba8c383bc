"""What users and our own tests share: scripted model, fake provider, conformance suites."""
