"""What TensorFlow's names stand for, as data: docs/migration.md shows it."""
